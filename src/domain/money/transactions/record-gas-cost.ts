import { decimalText } from '../../../assets/decimal.ts';
import { normalizeAddress } from '../../../assets/normalize-address.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { Inclusion } from '../../../ports/chains.ts';
import { decodeSponsoredOperation } from '../../../signing/ethereum/sponsored-operation.ts';
import { recordEvent } from '../../base/events/record-event.ts';
import type { Tables } from '../../tables.ts';
import { costInUsd } from '../gas-spend/gas-cost.ts';
import type { TransactionRow } from './transaction-row.ts';

// HOT: jobs of several processes claim transactions and move them from status to status. No bench case covers it.

type GasContext = Pick<OperationContext, 'em' | 'ids' | 'nowMs' | 'prices'>;

/** The contract's source of a cost by the method that sent the transaction. */
const sourceTypes: Readonly<Record<string, string>> = {
  transfer: 'wallet-action-transfer',
  swap: 'wallet-action-swap',
};

/**
 * Records what a sponsored transaction cost the app, and the completion of a user operation, once it is included.
 * Recorded once, even if a reorganization follows.
 */
export async function recordGasCost(
  context: GasContext,
  row: TransactionRow,
  inclusion: Inclusion,
): Promise<void> {
  if (row.is_sponsored === 0 || row.is_gas_told === 1) return;
  if (inclusion.operation !== undefined) {
    await recordEvent(context, {
      appId: row.app_id,
      type: 'user_operation.completed',
      payload: completedOf(row, inclusion),
    });
  }
  await recordEvent(context, {
    appId: row.app_id,
    type: 'usage.gas_sponsorship.recorded',
    payload: {
      event_id: context.ids.cuid2(),
      amount_usd: decimalText(await costInUsd(context, [{ caip2: row.caip2, fee: inclusion.feePaid }])),
      recorded_at: context.nowMs,
      source_type: sourceTypes[row.method] ?? 'rpc',
      source_id: row.id,
    },
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
