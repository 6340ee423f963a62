import type { SqlEntityManager } from '@mikro-orm/sql';
import type { OperationContext } from '../../../operation-context.ts';
import type { ChainTransfer } from '../../../ports/chain-transfers.ts';
import { readSparkAddress, sparkAddress } from '../../../signing/spark.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { ChainPositionEntity } from '../../access/chains/chain-position.entity.ts';
import { normalizeAddress } from '../../base/addresses/normalize-address.ts';
import { recordEvent } from '../../base/events/record-event.ts';
import type { Tables } from '../../tables.ts';
import { assetOf } from './record-funds.ts';

// HOT: jobs of several processes claim transactions and move them from status to status. No bench case covers it.

/** Transfers read from a chain's transfer list. */
export interface ReadTransfers {
  readonly caip2: string;
  /** The position before the first of them; undefined is the start of the chain. */
  readonly after: string | undefined;
  /** Oldest first, at least one. */
  readonly transfers: readonly ChainTransfer[];
}

/** The position from which a chain's next transfers are read; undefined is the start of the chain. */
export async function readChainPosition(em: SqlEntityManager, caip2: string): Promise<string | undefined> {
  return (await em.findOne(ChainPositionEntity, { caip2 }))?.position;
}

/**
 * Records `wallet.funds_deposited` for every wallet that received one of these transfers, from any sender, and moves
 * the chain's position past the last of them in the same transaction. Does nothing when another process has moved the
 * position since it was read: that process has recorded the events.
 *
 * CHOICE: deposits are reported only while the wallet exists and is not archived; earlier holdings are not.
 *
 * Result: whether the position was moved.
 */
export async function recordDeposits(
  context: Pick<OperationContext, 'em' | 'ids' | 'nowMs'>,
  read: ReadTransfers,
): Promise<boolean> {
  if (!(await movePosition(context.em, read))) return false;
  const receivers = await receiversOf(context.em, read);
  for (const transfer of read.transfers) {
    const asset = assetOf(read.caip2, transfer.tokenAddress ?? 'native');
    if (asset === undefined || transfer.rawAmount === 0n) continue;
    for (const receiver of receivers.get(storedAddress(read.caip2, transfer.recipient)) ?? []) {
      await recordEvent(context, {
        appId: receiver.app_id,
        type: 'wallet.funds_deposited',
        payload: {
          wallet_id: receiver.id,
          // One transaction may contain several transfers to one wallet; each has its own position.
          idempotency_key: `deposited:${read.caip2}:${transfer.position}:${receiver.id}`,
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
        },
      });
    }
  }
  return true;
}

/**
 * INVARIANT: the position only moves from where it was read, so of two processes that read the same transfers,
 * exactly one reports them.
 */
async function movePosition(
  em: SqlEntityManager,
  { caip2, after, transfers }: ReadTransfers,
): Promise<boolean> {
  const { position } = transfers.at(-1)!;
  const stored = await em.findOne(ChainPositionEntity, { caip2 }, lockForUpdate);
  if (stored?.position !== after) return false;
  if (stored === null) em.create(ChainPositionEntity, { caip2, position });
  else stored.position = position;
  await em.flush();
  return true;
}

interface Receiver {
  readonly id: string;
  readonly app_id: string;
}

/** The live wallets of all apps at the receiving addresses; several wallets may hold the same key. */
async function receiversOf(
  em: SqlEntityManager,
  { caip2, transfers }: ReadTransfers,
): Promise<ReadonlyMap<string, readonly Receiver[]>> {
  const addresses = [...new Set(transfers.map(({ recipient }) => storedAddress(caip2, recipient)))];
  const wallets = await em
    .getKysely<Tables>()
    .selectFrom('wallets')
    .select(['id', 'app_id', 'address'])
    .where('address', 'in', addresses)
    .where('archived_at_ms', 'is', null)
    .orderBy('id')
    .execute();
  return Map.groupBy(wallets, ({ address }) => address);
}

/**
 * The address under which wallets are stored: a Spark key has a different address on each network, and the mainnet
 * one is stored.
 */
function storedAddress(caip2: string, recipient: string): string {
  const key = caip2 === 'spark:regtest' ? readSparkAddress(recipient, 'REGTEST') : undefined;
  return key === undefined ? normalizeAddress(recipient) : sparkAddress(key, 'MAINNET');
}
