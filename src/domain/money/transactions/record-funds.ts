import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';
import { normalizeAddress } from '../../../engine/assets/addresses.ts';
import { readSparkAddress, sparkAddress } from '../../../engine/signing/spark.ts';
import type { TransferPage, WatchedAddresses } from '../../../ports/chains.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { recordEvent } from '../../base/events/events.ts';
import { OutboxEventEntity } from '../../base/events/outbox-event.entity.ts';
import { AppMoveEntity } from '../../base/processes/server-process.entity.ts';
import type { Claimant } from '../../base/processes/server-processes.ts';
import type { Tables } from '../../tables.ts';
import {
  type TriggerDeposit,
  triggerAutomations,
} from '../../wallets/wallet-automations/trigger-automations.ts';
import { WalletEntity } from '../../wallets/wallets/wallet.entity.ts';
import { ChainPositionEntity, TransactionEntity, type TransactionRow } from './transaction.entity.ts';

// KYSELY: joins deposits with their accounts, claims by compare-and-set with `returning`, and reads distinct addresses.

/**
 * Records the `wallet.funds_*` events of one of our transactions once it is included: withdrawn for the sender,
 * deposited for every wallet at the receiving address. They are recorded only once, even if a reorganization follows.
 *
 * NOTE: if a chain has a list of transfers, deposits are recorded from that list, including deposits from our own
 * wallets.
 */
export async function recordFunds(
  context: Pick<OperationContext, 'chains' | 'em' | 'ids' | 'notes' | 'nowMs'>,
  row: TransactionRow,
): Promise<void> {
  const { moved_token: token, moved_to: to, moved_amount: amount, block_number: block } = row;
  if (row.are_funds_told === 1 || token === null || to === null || amount === null || block === null) return;
  if (amount === '0') return;
  const asset = assetOf(row.caip2, token);
  if (asset === undefined) return;
  const payload = {
    caip2: row.caip2,
    asset,
    amount,
    transaction_hash: row.transaction_hash ?? '',
    sender: row.sender,
    recipient: normalizeAddress(to),
    block: { number: block, timestamp: row.block_timestamp_seconds ?? 0 },
    ...(row.fee_paid === null ? {} : { transaction_fee: row.fee_paid }),
  };

  await recordEvent(context, {
    appId: row.app_id,
    type: 'wallet.funds_withdrawn',
    payload: {
      ...payload,
      wallet_id: row.wallet_id,
      idempotency_key: `withdrawn:${row.id}`,
    },
  });
  const isListed = context.chains.find(row.caip2)?.transfersAfter !== undefined;
  if (!isListed) await recordFundsDeposited(context, row, payload);
  await context.em.nativeUpdate(TransactionEntity, { id: row.id }, { areFundsTold: 1 });
}

async function recordFundsDeposited(
  context: Pick<OperationContext, 'em' | 'ids' | 'notes' | 'nowMs'>,
  { id: transactionId, caip2, moved_token: token, transaction_hash: hash }: TransactionRow,
  payload: {
    readonly recipient: string;
    readonly amount: string;
    readonly block: { readonly number: number };
  },
): Promise<void> {
  const receivers = await walletsAt(context.em, [payload.recipient]);
  for (const receiver of receivers) {
    await recordEvent(context, {
      appId: receiver.appId,
      type: 'wallet.funds_deposited',
      payload: {
        ...payload,
        wallet_id: receiver.id,
        idempotency_key: `deposited:${transactionId}:${receiver.id}`,
      },
    });
  }
  const deposits = receivers.map((receiver) => ({
    ...{ appId: receiver.appId, walletId: receiver.id, caip2 },
    assetAddress: normalizeAddress(token ?? 'native'),
    rawAmount: BigInt(payload.amount),
    transferKey: transactionId,
    transactionHash: hash ?? '',
    blockNumber: String(payload.block.number),
  }));
  await triggerAutomations(context, deposits);
}

const tokenTypes: Readonly<Record<string, { readonly type: string; readonly address: string }>> = {
  eip155: { type: 'erc20', address: 'address' },
  solana: { type: 'spl', address: 'mint' },
  spark: { type: 'btkn', address: 'identifier' },
  tron: { type: 'trc20', address: 'address' },
};

/** Returns the asset in the form of events; undefined for token types that events cannot express. */
function assetOf(caip2: string, token: string): object | undefined {
  if (token === 'native') return { type: 'native-token', address: null };
  const kind = tokenTypes[caip2.slice(0, caip2.indexOf(':'))];
  return kind && { type: kind.type, [kind.address]: normalizeAddress(token) };
}

/** A page of a chain's transfers. */
interface ReadTransfers extends Omit<TransferPage, 'hasMore'> {
  readonly caip2: string;
  /** The position from which the page was read; undefined for the beginning. */
  readonly after: string | undefined;
}

/** A claim of a chain's list, and the position up to which its transfers are recorded; undefined if none are. */
interface Claim {
  readonly after: string | undefined;
}

/**
 * Claims the reading of a chain's next transfers, so that only one process reads them.
 *
 * @param leaseMs the time after which the claim expires. If undefined, the position is read without a claim.
 * @returns undefined while another process has the claim.
 */
export async function claimTransfers(
  em: SqlEntityManager,
  {
    caip2,
    owner,
    nowMs,
    leaseMs,
  }: Claimant & { readonly caip2: string; readonly leaseMs?: number | undefined },
): Promise<Claim | undefined> {
  if (leaseMs === undefined) {
    return {
      after: positionOf(await em.findOne(ChainPositionEntity, { caip2 }, { disableIdentityMap: true })),
    };
  }
  const database = em.getKysely<Tables>();
  await database
    .insertInto('chain_positions')
    .values({ caip2, position: NOTHING_READ, leased_until_ms: 0 })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const claimed = await database
    .updateTable('chain_positions')
    .set({ leased_until_ms: nowMs + leaseMs, claimed_by: owner })
    .where('caip2', '=', caip2)
    .where('leased_until_ms', '<=', nowMs)
    .returning('position')
    .executeTakeFirst();
  return claimed && { after: positionOf(claimed) };
}

/** Ends a claim whose transfers could not be read. */
export async function releaseTransfers(em: SqlEntityManager, caip2: string, owner: string): Promise<void> {
  await em.nativeUpdate(ChainPositionEntity, { caip2, claimedBy: owner }, { leasedUntilMs: 0 });
}

/** Ends the claims of a dead process. */
export async function releaseChainsOf(em: SqlEntityManager, { owner }: Claimant): Promise<void> {
  await em.nativeUpdate(ChainPositionEntity, { claimedBy: owner }, { leasedUntilMs: 0 });
}

const NOTHING_READ = '';

function positionOf(row: { readonly position: string } | null): string | undefined {
  return row === null || row.position === NOTHING_READ ? undefined : row.position;
}

/**
 * Records `wallet.funds_deposited` for every wallet that received one of these transfers, from any sender. Stores the
 * executions of automations in the same transaction, which also moves the chain's position and ends the claim. Does
 * nothing when another process has moved the position in the meantime, because that process has recorded the events.
 * Returns whether the position was moved.
 *
 * CHOICE: deposits are reported only while the wallet exists and is not archived. Assets that the address held earlier
 * are not reported.
 */
export async function recordDeposits(
  context: Pick<OperationContext, 'em' | 'ids' | 'notes' | 'nowMs'>,
  read: ReadTransfers,
): Promise<boolean> {
  if (!(await movePosition(context.em, read))) return false;
  if (read.transfers.length === 0) return true;
  const receivers = await receiversOf(context.em, read);
  const deposits: TriggerDeposit[] = [];
  const isTold = await recordedBeforeMove(context, [...receivers.values()].flat());
  const paidIn = await paymentsBehind(context.em, read);
  for (const transfer of read.transfers) {
    const asset = assetOf(read.caip2, transfer.tokenAddress ?? 'native');
    if (asset === undefined || transfer.rawAmount === 0n) continue;
    for (const receiver of receivers.get(storedAddress(read.caip2, transfer.recipient)) ?? []) {
      // One transaction may contain several transfers to one wallet. Each transfer has its own key.
      const key = `deposited:${read.caip2}:${transfer.key}:${receiver.id}`;
      if (isTold.has(key)) continue;
      await recordEvent(context, {
        appId: receiver.appId,
        type: 'wallet.funds_deposited',
        payload: {
          wallet_id: receiver.id,
          idempotency_key: key,
          caip2: read.caip2,
          asset,
          amount: String(transfer.rawAmount),
          transaction_hash: transfer.hash,
          sender: transfer.sender,
          recipient: normalizeAddress(transfer.recipient),
          block: {
            number: Number(transfer.blockNumber),
            timestamp: transfer.blockTimestampSeconds,
          },
          ...metadataOf(paidIn.get(transfer.hash), receiver),
        },
      });
      deposits.push({
        appId: receiver.appId,
        walletId: receiver.id,
        caip2: read.caip2,
        assetAddress: normalizeAddress(transfer.tokenAddress ?? 'native'),
        rawAmount: transfer.rawAmount,
        transferKey: transfer.key,
        transactionHash: transfer.hash,
        blockNumber: String(transfer.blockNumber),
      });
    }
  }
  await triggerAutomations(context, deposits);
  return true;
}

/**
 * Moves the position of a chain's list, and ends the claim.
 *
 * INVARIANT: the position only moves on from the position that was read. Of two processes that read the same transfers,
 * exactly one reports them.
 */
async function movePosition(
  em: SqlEntityManager,
  { caip2, after, position }: ReadTransfers,
): Promise<boolean> {
  const stored = await em.findOne(ChainPositionEntity, { caip2 }, lockForUpdate);
  if (positionOf(stored) !== after) return false;
  if (stored === null) em.create(ChainPositionEntity, { caip2, position: position ?? NOTHING_READ });
  else em.assign(stored, { position: position ?? NOTHING_READ, leasedUntilMs: 0 });
  await em.flush();
  return true;
}

/** CHOICE: the time after an app's move in which its new cell may read transfers again. */
const REREAD_MS = 24 * 60 * 60 * 1000;

/**
 * Returns the idempotency keys of the deposits that were recorded before. After an app has come from another cell,
 * transfers are read again from the earlier position of the two cells. If no app has come recently, this is one query.
 */
async function recordedBeforeMove(
  { em, nowMs }: Pick<OperationContext, 'em' | 'nowMs'>,
  receivers: readonly Receiver[],
): Promise<ReadonlySet<string>> {
  if (receivers.length === 0) return new Set();
  // Whatever the state: an app that has come may be on its way to a third cell already.
  const recent = { changedAtMs: { $gt: nowMs - REREAD_MS } };
  if ((await em.findOne(AppMoveEntity, recent, { disableIdentityMap: true })) === null) return new Set();
  const events = await em.find(
    OutboxEventEntity,
    {
      appId: { $in: [...new Set(receivers.map(({ appId }) => appId))] },
      resourceId: { $in: [...new Set(receivers.map(({ id }) => id))] },
      ...{ type: 'wallet.funds_deposited', createdAtMs: { $gt: nowMs - 2 * REREAD_MS } },
    },
    { fields: ['payload'], disableIdentityMap: true },
  );
  return new Set(
    events.map(({ payload }) => (JSON.parse(payload) as { idempotency_key: string }).idempotency_key),
  );
}

interface Receiver {
  readonly id: string;
  readonly appId: string;
  readonly address: string;
}

/** Finds the wallets at the receiving addresses. Several wallets may have the same key. */
async function receiversOf(
  em: SqlEntityManager,
  { caip2, transfers }: ReadTransfers,
): Promise<ReadonlyMap<string, readonly Receiver[]>> {
  const addresses = [...new Set(transfers.map(({ recipient }) => storedAddress(caip2, recipient)))];
  return Map.groupBy(await walletsAt(em, addresses), ({ address }) => address);
}

/** Finds the wallets of all apps at these addresses, without archived ones. */
function walletsAt(em: SqlEntityManager, addresses: readonly string[]): Promise<readonly Receiver[]> {
  return em.find(
    WalletEntity,
    { address: { $in: [...addresses] }, archivedAtMs: null },
    { fields: ['id', 'appId', 'address'], orderBy: { id: 'asc' }, disableIdentityMap: true },
  );
}

/** A deposit to a fiat deposit account that a provider has sent on to a wallet. */
interface PaidIn {
  readonly hash: string | null;
  readonly wallet_id: string;
  readonly provider_deposit_id: string;
  readonly virtual_account_id: string;
}

/** Finds the fiat payments behind the transfers that a provider made, if the provider has already reported them. */
async function paymentsBehind(
  em: SqlEntityManager,
  { transfers }: ReadTransfers,
): Promise<ReadonlyMap<string | null, PaidIn>> {
  const hashes = [...new Set(transfers.map(({ hash }) => hash))];
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('fiat_deposits as deposits')
    .innerJoin('fiat_deposit_accounts as accounts', 'accounts.id', 'deposits.account_id')
    .select(['deposits.transaction_hash as hash', 'deposits.provider_deposit_id'])
    .select(['accounts.wallet_id', 'accounts.virtual_account_id'])
    .where('deposits.transaction_hash', 'in', hashes)
    .execute();
  return new Map(rows.map((row) => [row.hash, row]));
}

function metadataOf(paidIn: PaidIn | undefined, receiver: Receiver): object {
  if (paidIn?.wallet_id !== receiver.id) return {};
  return {
    bridge_metadata: {
      type: 'fiat_deposit',
      method: 'virtual_account',
      activity_id: paidIn.provider_deposit_id,
      virtual_account_id: paidIn.virtual_account_id,
    },
  };
}

/**
 * Returns the address under which wallets are stored. A Spark key has a different address on each network, and the
 * mainnet address is stored.
 */
function storedAddress(caip2: string, recipient: string): string {
  const key = caip2 === 'spark:regtest' ? readSparkAddress(recipient, 'REGTEST') : undefined;
  return key === undefined ? normalizeAddress(recipient) : sparkAddress(key, 'MAINNET');
}

/** The number of addresses per statement. Databases limit the parameters of a statement and its time. */
const AT_ONCE = 500;

type InUnit = <T>(work: (em: SqlEntityManager) => Promise<T>) => Promise<T>;

/**
 * Returns a look-up of the addresses that belong to wallets of any app, without archived wallets. Each look-up has its
 * own short transaction.
 */
export function watchedAddresses(inUnit: InUnit): WatchedAddresses {
  return {
    async among(addresses) {
      const found = new Set<string>();
      for (let start = 0; start < addresses.length; start += AT_ONCE) {
        const some = addresses.slice(start, start + AT_ONCE);
        for (const address of await inUnit((em) => liveAmong(em, some))) found.add(address);
      }
      return found;
    },
    nextOnSolana: (address, limit) => inUnit((em) => liveOnSolana(em, address, limit)),
  };
}

async function liveAmong(em: SqlEntityManager, addresses: readonly string[]): Promise<string[]> {
  return (await walletsAt(em, addresses)).map(({ address }) => address);
}

async function liveOnSolana(
  em: SqlEntityManager,
  address: string | undefined,
  limit: number,
): Promise<string[]> {
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('wallets')
    .select('address')
    .distinct()
    // Use literals, so that the partial index `wallets_on_solana` applies.
    .where(sql<boolean>`chain_type = 'solana'`)
    .where('archived_at_ms', 'is', null)
    .where('address', '>', address ?? '')
    .orderBy('address')
    .limit(limit)
    .execute();
  return rows.map(({ address: found }) => found);
}
