import type { Prices } from '../../ports/chains.ts';
import type { ChainStore } from './chains/store.ts';

/*
 * SIMULATED prices: the price of each asset is fixed until `PUT /_sandbox/prices` moves it. PRODUCTION: there are no
 * prices: members of a response that need one are null. SETTING: none.
 */

// CHOICE: round numbers close to the prices of 2026, which make calculations easy.
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

/** Returns the fixed price of an asset by its lower-case symbol, or undefined for an asset without a price. */
export function fixedUsd(symbol: string): string | undefined {
  return Object.hasOwn(usd, symbol) ? usd[symbol] : undefined;
}

/** Prices that testers can change. */
export interface MovablePrices extends Prices {
  /** Returns the prices of all assets that have one, by lower-case symbol. */
  all(): Promise<ReadonlyMap<string, string>>;
  /** Changes the given prices to decimals above 0. Null restores the fixed price. */
  move(changes: ReadonlyMap<string, string | null>): Promise<void>;
}

/**
 * Returns the fixed prices, except for those that testers have moved. The store of the chains contains the moved
 * prices.
 *
 * CHOICE: pools keep their reserves, because on a real chain, too, only trades change them.
 *
 * @param begun returns the store, or undefined if nothing was stored yet.
 */
export function movablePrices(
  begun: () => Promise<ChainStore | undefined>,
  open: () => Promise<ChainStore>,
): MovablePrices {
  const all = async (): Promise<ReadonlyMap<string, string>> => {
    const moved = (await begun())?.all<{ symbol: string; usd: string }>('select symbol, usd from prices');
    return new Map([...Object.entries(usd), ...(moved ?? []).map((row) => [row.symbol, row.usd] as const)]);
  };
  return {
    all,
    async inUsd(symbols) {
      const prices = await all();
      return new Map(
        symbols.flatMap((symbol) => {
          const price = prices.get(symbol);
          return price === undefined ? [] : [[symbol, price] as const];
        }),
      );
    },
    async move(changes) {
      const store = await open();
      store.atomically(() => {
        for (const [symbol, price] of changes) {
          if (price === null) store.run('delete from prices where symbol = ?', symbol);
          else store.run('insert or replace into prices values (?, ?)', symbol, price);
        }
      });
    },
  };
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
