import { add, type Decimal, fromRaw, ZERO } from '../../../assets/decimal.ts';
import { chainOfCaip2 } from '../../../assets/known-chains.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { pricesOf, worthOf } from '../../wallets/balances/worth.ts';

/** The network fee of one transaction. */
export interface GasPaid {
  readonly caip2: string;
  /** In base units of the chain's native asset. */
  readonly fee: bigint;
}

/**
 * The total gas cost in US dollars at current prices, not rounded.
 *
 * CHOICE: gas on test networks, and on chains whose native asset has no price here, costs nothing.
 */
export async function costInUsd(
  context: Pick<OperationContext, 'prices'>,
  paid: readonly GasPaid[],
): Promise<Decimal> {
  const gas = paid.flatMap(({ caip2, fee }) => {
    const chain = chainOfCaip2(caip2);
    if (chain?.native === undefined) return [];
    const asset = { ...chain.native, chain, tokenAddress: null };
    return [{ asset, amount: fromRaw(fee, asset.decimals) }];
  });
  const priceOf = await pricesOf(
    context,
    gas.map(({ asset }) => asset),
    'usd',
  );
  return gas.map(({ asset, amount }) => worthOf(amount, priceOf(asset) ?? ZERO)).reduce(add, ZERO);
}
