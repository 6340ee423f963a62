import { rawAmountWorth } from '../../../exchange/rates.ts';
import { fixedUsd } from '../../../prices.ts';
import { pairAddress, sortTokens } from './addresses.ts';
import { tokensOn } from './tokens.ts';

/*
 * SIMULATED swapRoutes: swaps on one EVM chain go through a router with the interface of Uniswap V2 and its pools.
 * PRODUCTION: swaps go through the routers that the operator names; 400 `not_supported` on chains without one.
 * SETTING: `--rpc` with `--swap-router`; `CUSTOS_SWAP_ROUTERS` for `custos serve`.
 */

/** US dollars of each token in a pair. */
const SIDE_USD = 1_000_000n;

/** A pair of tokens in order, and what it begins with of each. */
export interface PlannedPair {
  readonly address: string;
  readonly tokens: readonly [string, string];
  readonly reserves: readonly [bigint, bigint];
}

/**
 * The pairs that a chain begins with.
 *
 * CHOICE: every two tokens with a price and a name on a chain have a pair, of $1,000,000 of each at the fixed prices.
 */
export function pairsOn(chain: Parameters<typeof tokensOn>[0]): readonly PlannedPair[] {
  const priced = tokensOn(chain).flatMap(({ address, pricedAs, ...terms }) => {
    const price = fixedUsd(pricedAs);
    return price === undefined ? [] : [{ address, reserve: rawAmountWorth(SIDE_USD, { ...terms, price }) }];
  });
  const reserves = new Map(priced.map(({ address, reserve }) => [address, reserve]));
  const addresses = [...reserves.keys()];
  return addresses.flatMap((one, index) =>
    addresses.slice(index + 1).map((other) => {
      const tokens = sortTokens(one, other);
      const [first, second] = tokens;
      return {
        ...{ address: pairAddress(one, other), tokens },
        reserves: [reserves.get(first)!, reserves.get(second)!] as const,
      };
    }),
  );
}
