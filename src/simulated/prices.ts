import type { Prices } from '../ports/prices.ts';

// CHOICE: round numbers close to the prices of 2026, easy to calculate with.
const usd: Readonly<Record<string, string>> = {
  usdc: '1',
  'usdc.e': '1',
  usdt: '1',
  usdb: '1',
  ousd: '1',
  pathusd: '1',
  eurc: '1.1',
  eth: '3000',
  weth: '3000',
  btc: '100000',
  sol: '150',
  pol: '0.5',
  avax: '30',
  bnb: '700',
  hype: '40',
  trx: '0.25',
  xrp: '2',
  xlm: '0.3',
  sui: '3',
  apt: '8',
  move: '0.2',
  near: '4',
  ton: '3',
  strk: '0.2',
  atom: '5',
  prl: '1',
};

/** The price of an asset by its symbol in lower case; undefined for assets without one. */
export function fixedUsd(symbol: string): string | undefined {
  return Object.hasOwn(usd, symbol) ? usd[symbol] : undefined;
}

/** Constant prices for tests. */
export const fixedPrices: Prices = {
  inUsd: async (symbols) =>
    new Map(
      symbols.flatMap((symbol) => {
        const price = fixedUsd(symbol);
        return price === undefined ? [] : [[symbol, price] as const];
      }),
    ),
};
