import type { OperationContext } from '../../services.ts';
import type { Tables } from '../../storage/entities.ts';
import { recordEvent } from '../events/record-event.ts';
import { normalizeAddress } from '../wallets/normalize-address.ts';
import type { TransactionRow } from './transaction-row.ts';

/**
 * Tells of the funds that a transaction of ours moved, once it is in a block: that the wallet sent them, and every
 * wallet at the receiving address that it has them. Told once, whatever a reorganization does afterwards.
 */
export async function tellOfFunds(
  context: Pick<OperationContext, 'em' | 'ids' | 'nowMs'>,
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
  await recordEvent({ ...context, app: { id: row.app_id, name: '' } }, 'wallet.funds_withdrawn', {
    ...payload,
    wallet_id: row.wallet_id,
    idempotency_key: `withdrawn:${row.id}`,
  });
  const receivers = await database
    .selectFrom('wallets')
    .select(['id', 'app_id'])
    .where('address', '=', normalizeAddress(to))
    .where('archived_at_ms', 'is', null)
    .orderBy('id')
    .execute();
  for (const receiver of receivers) {
    await recordEvent({ ...context, app: { id: receiver.app_id, name: '' } }, 'wallet.funds_deposited', {
      ...payload,
      wallet_id: receiver.id,
      idempotency_key: `deposited:${row.id}:${receiver.id}`,
    });
  }
  await database.updateTable('transactions').set({ are_funds_told: 1 }).where('id', '=', row.id).execute();
}

const tokenTypes: Readonly<Record<string, { readonly type: string; readonly address: string }>> = {
  eip155: { type: 'erc20', address: 'address' },
  solana: { type: 'spl', address: 'mint' },
  tron: { type: 'trc20', address: 'address' },
};

function assetOf(caip2: string, token: string): object | undefined {
  if (token === 'native') return { type: 'native-token', address: null };
  const kind = tokenTypes[caip2.slice(0, caip2.indexOf(':'))];
  return kind && { type: kind.type, [kind.address]: normalizeAddress(token) };
}
