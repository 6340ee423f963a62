import { decimalText, fromRaw, readDecimal } from '../../../engine/assets/decimal.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type {
  DepositAccountCryptoQuoteResponse,
  QuoteCryptoDepositRequest,
} from '../../../generated/schemas.ts';
import { type PlanContext, type Planned, unwrapPlan } from '../../../ports/operation-context.ts';
import { requireRaw } from '../wallet-actions/plan-exchange.ts';
import { notSupported, requireAssetText, requireChainText, requireDepositChain } from './deposit-chains.ts';
import { estimateConversion, isSame, typicalAmount } from './deposit-routes.ts';

/**
 * Estimates the amount that a deposit to a deposit address delivers. Call it outside any database transaction.
 *
 * @throws ApiError invalid_data for an amount that is not exchanged; not_supported for unknown assets and chains,
 * chains without a paymaster, and pairs that are not exchanged; transaction_broadcast_failure when the chain or the
 * exchange cannot be reached.
 */
export async function planQuote(
  context: PlanContext,
  {
    source: from,
    destination: to,
    input_amount: amount,
    slippage_bps: slippageBps,
  }: QuoteCryptoDepositRequest,
): Promise<DepositAccountCryptoQuoteResponse> {
  const sourceChain = requireChainText(from.chain, '/source/chain');
  requireDepositChain(context, sourceChain, { payer: 'paymaster', pointer: '/source/chain' });
  const source = requireAssetText(sourceChain, from.asset, '/source/asset');
  const destinationChain = requireChainText(to.chain, '/destination/chain');
  const destination = requireAssetText(destinationChain, to.asset, '/destination/asset');
  if (isSame(source, destination)) {
    throw notSupported('/destination', 'expected another asset or another chain than the source');
  }
  const rawAmount =
    amount === undefined
      ? await typicalAmount(context, source)
      : requireRaw(source, readDecimal(amount)!, '/input_amount');
  if (rawAmount === 0n) throw invalidField('/input_amount', 'expected an amount above 0');
  const rawOutput = await estimateConversion(context, { source, destination, rawAmount, slippageBps }).catch(
    (error: unknown) => {
      throw asInputAmount(error);
    },
  );
  return {
    input_amount: decimalText(fromRaw(rawAmount, source.decimals)),
    estimated_output_amount: decimalText(fromRaw(rawOutput, destination.decimals)),
    created_at: new Date(context.nowMs).toISOString(),
  };
}

/** @throws what `planQuote` throws. */
export function quoteDeposit(
  planned: Planned<DepositAccountCryptoQuoteResponse>,
): DepositAccountCryptoQuoteResponse {
  return unwrapPlan(planned);
}

/** Renames the pointer of an error, because swaps have another name for the amount. */
function asInputAmount(error: unknown): unknown {
  const pointer = '/base_amount: ';
  if (!(error instanceof ApiError) || !error.message.startsWith(pointer)) return error;
  return invalidField('/input_amount', error.message.slice(pointer.length));
}
