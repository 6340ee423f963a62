import type { Inclusion, OperationContext } from '../../services.ts';
import { decodeSponsoredOperation } from '../../signing/ethereum/sponsored-operation.ts';
import type { Tables } from '../../storage/entities.ts';
import { decimalText, fromRaw, ZERO } from '../balances/decimal.ts';
import { pricesOf, worthOf } from '../balances/worth.ts';
import { chainOfCaip2 } from '../chains/known-chains.ts';
import { recordEvent } from '../events/record-event.ts';
import { normalizeAddress } from '../wallets/normalize-address.ts';
import type { TransactionRow } from './transaction-row.ts';

type GasContext = Pick<OperationContext, 'em' | 'ids' | 'nowMs' | 'prices'>;

/**
 * Tells what a sponsored transaction cost the app, and of a user operation that it was carried out, once it is in a
 * block. Told once, whatever a reorganization does afterwards.
 */
export async function tellOfGas(
  context: GasContext,
  row: TransactionRow,
  inclusion: Inclusion,
): Promise<void> {
  if (row.is_sponsored === 0 || row.is_gas_told === 1) return;
  const app = { id: row.app_id, name: '' };
  if (inclusion.operation !== undefined) {
    await recordEvent({ ...context, app }, 'user_operation.completed', completedOf(row, inclusion));
  }
  await recordEvent({ ...context, app }, 'usage.gas_sponsorship.recorded', {
    event_id: context.ids.cuid2(),
    amount_usd: await costInUsd(context, row.caip2, inclusion.feePaid),
    recorded_at: context.nowMs,
    source_type: row.method === 'transfer' ? 'wallet-action-transfer' : 'rpc',
    source_id: row.id,
  });
  await context.em
    .getKysely<Tables>()
    .updateTable('transactions')
    .set({ is_gas_told: 1 })
    .where('id', '=', row.id)
    .execute();
}

function completedOf(row: TransactionRow, { blockNumber, feePaid, operation }: Inclusion) {
  const { user_operation: sent } = decodeSponsoredOperation(row.signed_bytes);
  return {
    user_op_hash: row.user_operation_hash,
    sender: row.sender,
    paymaster: sent.paymaster === undefined ? null : normalizeAddress(sent.paymaster),
    nonce: String(BigInt(sent.nonce)),
    success: row.status !== 'execution_reverted',
    actual_gas_cost: String(feePaid),
    actual_gas_used: String(operation?.gasUsed),
    caip2: row.caip2,
    transaction_hash: row.transaction_hash,
    block_number: Number(blockNumber),
    log_index: operation?.logIndex,
  };
}

/** CHOICE: gas on test networks, and on chains whose native asset has no price here, costs nothing. */
async function costInUsd(
  context: Pick<GasContext, 'prices'>,
  caip2: string,
  feePaid: bigint,
): Promise<string> {
  const chain = chainOfCaip2(caip2);
  if (chain?.native === undefined) return '0';
  const asset = { ...chain.native, chain, tokenAddress: null };
  const price = (await pricesOf(context, [asset], 'usd'))(asset) ?? ZERO;
  return decimalText(worthOf(fromRaw(feePaid, asset.decimals), price));
}
