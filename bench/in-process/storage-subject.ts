import { recordEvent } from '../../src/domain/base/events/events.ts';
import { OutboxEventEntity } from '../../src/domain/base/events/outbox-event.entity.ts';
import { insertWallet, type KeyOfWallet } from '../../src/domain/wallets/wallets/create-wallet.ts';
import { findWallet, listWallets } from '../../src/domain/wallets/wallets/find-wallet.ts';
import {
  WalletEntity,
  WalletKeyEntity,
  walletColumns,
} from '../../src/domain/wallets/wallets/wallet.entity.ts';
import type { OperationContext, UnitContext } from '../../src/ports/operation-context.ts';
import { unitsOf } from '../../src/server/unit-of-work.ts';
import { findPage } from '../../src/storage/find-page.ts';
import type { Database } from '../../src/storage/open-database.ts';
import { credentials } from '../servers/credentials.ts';
import { insertStatement, walletKeyColumns } from '../servers/handlers/stored-work.ts';

/** The measured operations, for one way of accessing a database. */
export interface StorageSubject {
  /** A wallet, its key and an event in one transaction. */
  create(id: string): Promise<void> | void;
  get(id: string): Promise<void> | void;
  /** The fifty wallets before this one, in order of age. */
  page(id: string): Promise<void> | void;
}

export const storageOperations = ['create', 'get', 'page'] as const;
export const PAGE = 50;

/** Values shared by all wallets here: creating and sealing keys is not part of storage. */
const sealed = {
  sealedSecret: new Uint8Array(78).fill(1),
  wrappedDataKey: new Uint8Array(60).fill(2),
  masterKeyId: 'bench',
};
const material: Omit<KeyOfWallet, 'walletId'> = {
  sealed,
  address: '0x9858EfFD232B4033E47d90003D41EC34EcaEda94',
  publicKey: null,
  entropyType: 'hd',
  derivationPath: "m/44'/60'/0'/0/0",
  walletIndex: 0,
};
const archivedAt = 1_763_719_200;
const sealedBuffers = {
  ...sealed,
  sealedSecret: Buffer.from(sealed.sealedSecret),
  wrappedDataKey: Buffer.from(sealed.wrappedDataKey),
};
const { entropyType, derivationPath, walletIndex } = material;
const keyTerms = { entropyType, derivationPath, walletIndex };
const emptyWallet = {
  chainType: 'ethereum',
  address: material.address,
  publicKey: null,
  displayName: null,
  externalId: null,
  ownerId: null,
  policyId: null,
  additionalSigners: '[]',
  entityType: null,
  entityId: null,
  entityAssignmentId: null,
  entityAssignedAtMs: null,
  custodyProvider: null,
  custodyProviderUserId: null,
  custodyChain: null,
  exportedAtMs: null,
  importedAtMs: null,
  archivedAtMs: null,
};
const firstAtMs = 1_700_000_000_000;

/** Times increase with the numbers in the ids, so that pages are ordered. */
export function timeOf(id: string): number {
  return firstAtMs + Number(id.slice(1));
}

/** `w` and 23 digits. */
export function idOf(number: number): string {
  return `w${String(number).padStart(23, '0')}`;
}

function eventOf(id: string): object {
  return { wallet_id: id, wallet_address: material.address, chain_type: 'ethereum', archived_at: archivedAt };
}

/** Our verbs in a unit of work, as requests run them. */
export function oursOn(database: Database): StorageSubject {
  const openUnit = unitsOf(database);
  const contextOf = ({ em, notes }: UnitContext, id: string): OperationContext =>
    ({
      ...{ em, notes },
      app: { id: credentials.appId, name: '' },
      nowMs: timeOf(id),
      ids: { cuid2: () => id },
    }) as unknown as OperationContext;
  return {
    async create(id) {
      const unit = await openUnit(true);
      const context = contextOf(unit, id);
      await insertWallet(context, { chainType: 'ethereum', ownerId: null }, { ...material, walletId: id });
      await recordEvent(context, { appId: context.app.id, type: 'wallet.archived', payload: eventOf(id) });
      await unit.commit();
    },
    async get(id) {
      const unit = await openUnit(false);
      await findWallet(contextOf(unit, id), id);
    },
    async page(id) {
      const unit = await openUnit(false);
      const { wallets } = await listWallets(contextOf(unit, id), {}, { cursor: id, limit: PAGE });
      requirePage(wallets.length);
    },
  };
}

/**
 * The same through the entity manager, with entities that are read and flushed in a unit of work each. The difference
 * is what our prepared queries save.
 */
export function entityManagerOn(database: Database): StorageSubject {
  const openUnit = unitsOf(database);
  const { appId } = credentials;
  return {
    async create(id) {
      const { em, commit } = await openUnit(true);
      const row = { ...emptyWallet, id, appId, createdAtMs: timeOf(id) };
      em.create(WalletEntity, row);
      em.create(WalletKeyEntity, { walletId: id, ...sealedBuffers, ...keyTerms });
      em.create(OutboxEventEntity, {
        id: `msg_${id}`,
        appId,
        type: 'wallet.archived',
        payload: JSON.stringify({ type: 'wallet.archived', ...eventOf(id) }),
        resourceId: id,
        createdAtMs: timeOf(id),
        fannedOutAtMs: null,
      });
      await commit();
    },
    async get(id) {
      const { em } = await openUnit(false);
      await em.findOneOrFail(WalletEntity, { appId, id });
    },
    async page(id) {
      const { em } = await openUnit(false);
      const after = await em.findOneOrFail(WalletEntity, { appId, id });
      const where = { appId, archivedAtMs: null };
      const { page } = await findPage(em, WalletEntity, where, { after, limit: PAGE });
      requirePage(page.length);
    },
  };
}

/** Ensures that full pages are measured. */
export function requirePage(length: number): void {
  if (length !== PAGE) throw new Error(`a page has ${length} wallets`);
}

/** `?` for SQLite. */
export const plainStatements = {
  wallet: insertStatement('wallets', walletColumns),
  key: insertStatement('wallet_keys', walletKeyColumns),
  event: insertStatement('outbox_events', [
    'id',
    'app_id',
    'type',
    'payload',
    'resource_id',
    'created_at_ms',
  ]),
  // As ours: the view of a wallet shows its automations, and a use of it needs the digest of its policy.
  get: `select ${walletColumns.map((column) => `wallets.${column}`).join(', ')}, policies.rules_digest,
    exists (
      select 1 from wallet_automation_attachments as attachments where attachments.wallet_id = wallets.id
    ) as has_automations
    from wallets left join policies on policies.id = wallets.policy_id
    where wallets.app_id = ? and wallets.id = ?`,
  cursor: 'select created_at_ms from wallets where id = ? and app_id = ?',
  page: `select ${walletColumns.join(', ')} from wallets where app_id = ? and archived_at_ms is null
    and (created_at_ms, id) < (?, ?) order by created_at_ms desc, id desc limit ?`,
};

/** The values of `plainStatements`, in order. */
export function walletValues(id: string): unknown[] {
  const row: Partial<Record<(typeof walletColumns)[number], unknown>> = {
    id,
    app_id: credentials.appId,
    chain_type: 'ethereum',
    address: material.address,
    additional_signers: '[]',
    created_at_ms: timeOf(id),
  };
  return walletColumns.map((column) => row[column] ?? null);
}

export function keyValues(id: string): unknown[] {
  return [
    ...[id, sealed.sealedSecret, sealed.wrappedDataKey, sealed.masterKeyId],
    ...[entropyType, derivationPath, walletIndex],
  ];
}

export function eventValues(id: string): unknown[] {
  const payload = JSON.stringify({ type: 'wallet.archived', ...eventOf(id) });
  return [`msg_${id}`, credentials.appId, 'wallet.archived', payload, id, timeOf(id)];
}
