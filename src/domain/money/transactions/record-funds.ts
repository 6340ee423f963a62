import { normalizeAddress } from '../../../assets/normalize-address.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { recordEvent } from '../../base/events/record-event.ts';
import type { Tables } from '../../tables.ts';
import { triggerAutomations } from '../../wallets/wallet-automations/trigger-automations.ts';
import type { TransactionRow } from './transaction-row.ts';

// HOT: jobs of several processes claim transactions and move them from status to status. No bench case covers it.

/**
 * Records the `wallet.funds_*` events of one of our transactions once it is included: withdrawn for the sender,
 * deposited for every wallet at the receiving address. Recorded once, even if a reorganization follows.
 *
 * NOTE: on a chain that keeps a transfer list, deposits are recorded from that list, including those from our own
 * wallets.
 */
export async function recordFunds(
  context: Pick<OperationContext, 'chains' | 'em' | 'ids' | 'nowMs'>,
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
  const database = context.em.getKysely<Tables>();
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
  await database.updateTable('transactions').set({ are_funds_told: 1 }).where('id', '=', row.id).execute();
}

async function recordFundsDeposited(
  context: Pick<OperationContext, 'em' | 'ids' | 'nowMs'>,
  { id: transactionId, caip2, moved_token: token, transaction_hash: hash }: TransactionRow,
  payload: {
    readonly recipient: string;
    readonly amount: string;
    readonly block: { readonly number: number };
  },
): Promise<void> {
  const receivers = await context.em
    .getKysely<Tables>()
    .selectFrom('wallets')
    .select(['id', 'app_id'])
    .where('address', '=', payload.recipient)
    .where('archived_at_ms', 'is', null)
    .orderBy('id')
    .execute();
  for (const receiver of receivers) {
    await recordEvent(context, {
      appId: receiver.app_id,
      type: 'wallet.funds_deposited',
      payload: {
        ...payload,
        wallet_id: receiver.id,
        idempotency_key: `deposited:${transactionId}:${receiver.id}`,
      },
    });
  }
  const deposits = receivers.map((receiver) => ({
    ...{ appId: receiver.app_id, walletId: receiver.id, caip2 },
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

/** How events name an asset, including `native`; undefined for token types that events cannot name. */
export function assetOf(caip2: string, token: string): object | undefined {
  if (token === 'native') return { type: 'native-token', address: null };
  const kind = tokenTypes[caip2.slice(0, caip2.indexOf(':'))];
  return kind && { type: kind.type, [kind.address]: normalizeAddress(token) };
}
