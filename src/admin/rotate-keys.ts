import type { SqlEntityManager } from '@mikro-orm/sql';
import { systemClock } from '../adapters/runtime.ts';
import type { KeyStoreSettings } from '../config/signer.ts';
import { StartError } from '../config/start-error.ts';
import { masterKeysOfCodes, rotateTestCodes } from '../domain/access/apps/test-account-codes.ts';
import { recordChange } from '../domain/access/operators/operator.ts';
import { findUnfinishedMoves } from '../domain/base/processes/server-processes.ts';
import {
  auditKeyBinding,
  depositInstructionsBinding,
  fingerprintKeyBinding,
  policyBinding,
  quorumChangesBinding,
  signingKeyBinding,
  voucherKeyBinding,
  walletImportBinding,
  walletKeyBinding,
  webhookSecretBinding,
} from '../domain/base/sealed-keys/sealed-keys.ts';
import { entities, type Tables } from '../domain/tables.ts';
import { policyDigest } from '../engine/authorization/policy-seals.ts';
import { authorityDigest } from '../engine/authorization/wallet-authority.ts';
import type { KeyStore, SealBinding, SealedKey } from '../ports/key-store.ts';
import type { UnitContext, UnitWork } from '../ports/operation-context.ts';
import { inUnitOf, unitsOf } from '../server/unit-of-work.ts';
import { openDatabase } from '../storage/open-database.ts';
import { asStartError, commandLine } from './administration.ts';
import { requireMasterKey, withKeyStore } from './open-key-store.ts';

// The tables with sealed secrets. HOT: the rotation re-seals every secret of the database in batches. No bench case
// covers it.

type SealedTable =
  | 'audit_keys'
  | 'wallet_keys'
  | 'policy_seals'
  | 'key_quorum_seals'
  | 'wallet_imports'
  | 'app_signing_keys'
  | 'webhook_secrets'
  | 'fingerprint_keys'
  | 'voucher_keys'
  | 'fiat_deposit_instructions';

interface SealedRow extends SealedKey {
  readonly id: string;
  readonly binding: SealBinding;
}

/** Every table with sealed secrets. A new table must be added here. */
const tables: readonly SealedTable[] = [
  'wallet_keys',
  'policy_seals',
  'key_quorum_seals',
  'wallet_imports',
  'app_signing_keys',
  'webhook_secrets',
  'fingerprint_keys',
  'voucher_keys',
  'fiat_deposit_instructions',
  'audit_keys',
];

/**
 * Rewraps up to `limit` data keys of one table under the current master key, in the transaction of `em`. A row is
 * written only if its wrapping is unchanged since it was read, so the server and another rotation may run concurrently.
 *
 * @returns how many data keys were found, which is 0 at the end, and how many of them this call has rewrapped.
 */
async function rotateBatch(
  em: SqlEntityManager,
  keyStore: KeyStore,
  table: SealedTable,
  limit: number,
): Promise<{ found: number; moved: number }> {
  const rows = await readers[table](em, keyStore.currentMasterKeyId, limit);
  // Rewrap all of them before the first change, because the change begins the transaction.
  const rewrapped: { row: SealedRow; moved: SealedKey }[] = [];
  for (const row of rows) rewrapped.push({ row, moved: await keyStore.rewrap(row, row.binding) });
  let movedHere = 0;
  for (const { row, moved } of rewrapped) {
    const { numUpdatedRows } = await em
      .getKysely<Tables>()
      .updateTable(table)
      .set({ wrapped_data_key: Buffer.from(moved.wrappedDataKey), master_key_id: moved.masterKeyId })
      .where(table === 'wallet_keys' ? 'wallet_id' : 'id', '=', row.id)
      .where('master_key_id', '=', row.masterKeyId)
      // A change of a wallet's key or a policy's secret seals it under another data key, possibly with the same
      // master key.
      .where('wrapped_data_key', '=', Buffer.from(row.wrappedDataKey))
      .executeTakeFirst();
    movedHere += Number(numUpdatedRows);
  }
  return { found: rows.length, moved: movedHere };
}

const BATCH = 100;

interface RotationObserver {
  onProgress(moved: number): void;
  record(unit: UnitContext, moved: number): Promise<void>;
}

/**
 * Rewraps every data key under the key store's current master key, in batches. It can be stopped and restarted safely.
 *
 * @param inTransaction runs one batch in its own transaction.
 * @param onProgress called with the number of keys rewrapped so far.
 * @param record called in the transaction of each batch that rewrapped some.
 * @returns the number of keys rewrapped.
 */
export async function rotateSealedKeys(
  keyStore: KeyStore,
  inTransaction: <T>(work: UnitWork<T>) => Promise<T>,
  { onProgress, record }: RotationObserver,
): Promise<number> {
  let moved = 0;
  for (const table of tables) {
    for (;;) {
      const batch = await inTransaction(async (em, notes) => {
        const rotated = await rotateBatch(em, keyStore, table, BATCH);
        if (rotated.moved > 0) await record({ em, notes }, rotated.moved);
        return rotated;
      });
      if (batch.found === 0) break;
      moved += batch.moved;
      onProgress(moved);
    }
  }
  moved += await inTransaction(async (em, notes) => {
    const rotated = await rotateTestCodes(em, keyStore);
    if (rotated > 0) await record({ em, notes }, rotated);
    return rotated;
  });
  await inTransaction((em) => forgetUnusedKeys(em, keyStore.currentMasterKeyId));
  return moved;
}

/**
 * Deletes the records of master keys that no longer wrap any data key. They need not be configured at the next start.
 */
async function forgetUnusedKeys(em: SqlEntityManager, currentId: string): Promise<void> {
  const database = em.getKysely<Tables>();
  let unused = database.deleteFrom('master_key_checks').where('master_key_id', '<>', currentId);
  // A server that was not restarted may have sealed something with an earlier key in the meantime.
  for (const table of tables) {
    unused = unused.where('master_key_id', 'not in', database.selectFrom(table).select('master_key_id'));
  }
  const ofCodes = await masterKeysOfCodes(em);
  if (ofCodes.length > 0) unused = unused.where('master_key_id', 'not in', ofCodes);
  await unused.execute();
}

type Reader = (em: SqlEntityManager, currentId: string, limit: number) => Promise<SealedRow[]>;

interface StoredSeal {
  sealed_secret: Uint8Array;
  wrapped_data_key: Uint8Array;
  master_key_id: string;
}

function sealedOf(row: StoredSeal): SealedKey {
  return {
    sealedSecret: row.sealed_secret,
    wrappedDataKey: row.wrapped_data_key,
    masterKeyId: row.master_key_id,
  };
}

const readers: Readonly<Record<SealedTable, Reader>> = {
  async wallet_keys(em, currentId, limit) {
    const rows = await em
      .getKysely<Tables>()
      .selectFrom('wallet_keys as key')
      .innerJoin('wallets as wallet', 'wallet.id', 'key.wallet_id')
      .select(['key.wallet_id', 'key.sealed_secret', 'key.wrapped_data_key', 'key.master_key_id'])
      .select(['wallet.app_id', 'wallet.chain_type', 'key.authority'])
      .where('key.master_key_id', '<>', currentId)
      // The fixed order prevents two concurrent rotations from deadlocking.
      .orderBy('key.wallet_id')
      .limit(limit)
      .execute();
    return rows.map((row) => ({
      ...sealedOf(row),
      id: row.wallet_id,
      binding: {
        ...walletKeyBinding({ ...row, id: row.wallet_id }),
        ...(row.authority === null ? {} : { authority: authorityDigest(JSON.parse(row.authority)) }),
      },
    }));
  },
  async policy_seals(em, currentId, limit) {
    const rows = await em
      .getKysely<Tables>()
      .selectFrom('policy_seals')
      .select(['id', 'app_id', 'content', 'sealed_secret', 'wrapped_data_key', 'master_key_id'])
      .where('master_key_id', '<>', currentId)
      .orderBy('id')
      .limit(limit)
      .execute();
    return rows.map((row) => ({
      ...sealedOf(row),
      id: row.id,
      binding: { ...policyBinding(row), authority: policyDigest(row.content) },
    }));
  },
  async key_quorum_seals(em, currentId, limit) {
    const rows = await em
      .getKysely<Tables>()
      .selectFrom('key_quorum_seals')
      .select(['id', 'app_id', 'digest', 'sealed_secret', 'wrapped_data_key', 'master_key_id'])
      .where('master_key_id', '<>', currentId)
      .orderBy('id')
      .limit(limit)
      .execute();
    return rows.map((row) => ({
      ...sealedOf(row),
      id: row.id,
      binding: { ...quorumChangesBinding(row), authority: row.digest },
    }));
  },
  async wallet_imports(em, currentId, limit) {
    const rows = await em
      .getKysely<Tables>()
      .selectFrom('wallet_imports')
      .select(['id', 'app_id', 'chain_type', 'sealed_secret', 'wrapped_data_key', 'master_key_id'])
      .where('master_key_id', '<>', currentId)
      .orderBy('id')
      .limit(limit)
      .execute();
    return rows.map((row) => ({
      ...sealedOf(row),
      id: row.id,
      binding: walletImportBinding(row),
    }));
  },
  audit_keys: readerOf('audit_keys', auditKeyBinding),
  app_signing_keys: readerOf('app_signing_keys', signingKeyBinding),
  webhook_secrets: readerOf('webhook_secrets', webhookSecretBinding),
  fingerprint_keys: readerOf('fingerprint_keys', fingerprintKeyBinding),
  voucher_keys: readerOf('voucher_keys', voucherKeyBinding),
  fiat_deposit_instructions: readerOf('fiat_deposit_instructions', depositInstructionsBinding),
};

/** Reads a table whose seals are bound only to the id and the app of their row. */
function readerOf(
  table: Exclude<SealedTable, 'wallet_keys' | 'policy_seals' | 'key_quorum_seals' | 'wallet_imports'>,
  bindingOf: (row: { readonly id: string; readonly app_id: string }) => SealBinding,
): Reader {
  return async (em, currentId, limit) => {
    const rows = await em
      .getKysely<Tables>()
      .selectFrom(table)
      .select(['id', 'app_id', 'sealed_secret', 'wrapped_data_key', 'master_key_id'])
      .where('master_key_id', '<>', currentId)
      .orderBy('id')
      .limit(limit)
      .execute();
    return rows.map((row) => ({ ...sealedOf(row), id: row.id, binding: bindingOf(row) }));
  };
}

/**
 * Rewraps every sealed key of a database under the current master key and returns their number.
 *
 * @throws StartError
 */
export function rotateKeys(
  {
    url,
    cell,
    keyStore: settings,
  }: { readonly url: string; readonly cell?: string; readonly keyStore: KeyStoreSettings },
  onProgress: (rewrapped: number) => void,
): Promise<number> {
  return withKeyStore(settings, async (keyStore) => {
    try {
      return await rotateUnder(keyStore, url, onProgress);
    } catch (error) {
      throw asStartError(error, cell);
    }
  });
}

async function rotateUnder(
  keyStore: KeyStore,
  url: string,
  onProgress: (rewrapped: number) => void,
): Promise<number> {
  const database = await openDatabase(entities, { kind: 'postgres', url, poolSize: 1 });
  try {
    const advice = 'add the key they were sealed under to CUSTOS_PREVIOUS_MASTER_KEYS';
    await requireMasterKey(database, keyStore, advice);
    const [leaving] = await findUnfinishedMoves(database.orm.em.fork());
    // Its keys are not in their tables.
    if (leaving !== undefined)
      throw new StartError(`the app \`${leaving.appId}\` is being moved: finish or abort its move first`);
    return await rotateSealedKeys(keyStore, inUnitOf(unitsOf(database)), {
      onProgress,
      record({ em, notes }, moved) {
        const change = { action: 'rotateMasterKey', targets: { rewrapped: String(moved) } };
        const context = { em, notes, nowMs: systemClock.now(), by: commandLine };
        return recordChange(context, { ...change, appId: null });
      },
    });
  } finally {
    await database.close();
  }
}
