import { hash } from 'node:crypto';
import { hexToBytes } from '../../../engine/crypto/encoding.ts';
import { deriveWallet } from '../../../engine/signing/chains.ts';
import type { FiatAsset, FiatEnvironment } from '../../../ports/fiat.ts';
import { RevertError } from '../chains/ledger.ts';
import type { ChainStore } from '../chains/store.ts';
import { type Deposit, type Funded, InvalidDepositError, type Simulated } from '../chains/world.ts';
import { rawAmountWorth } from '../exchange/rates.ts';
import { toLedger } from '../exchange/solver.ts';
import type { FiatParts } from './parts.ts';

/** CHOICE: the faucet funds the bank's treasury once with this value of each asset on each chain. */
const STOCK_USD = 10_000_000n;

const chainTypes = { eip155: 'ethereum', solana: 'solana', tron: 'tron' } as const;

/** Derives an address from a string. Only the simulated bank uses it. Returns undefined for an unsupported chain. */
export async function bankAddress(caip2: string, text: string): Promise<string | undefined> {
  const namespace = caip2.slice(0, caip2.indexOf(':'));
  if (!(namespace in chainTypes)) return undefined;
  const chainType = chainTypes[namespace as keyof typeof chainTypes];
  const { address } = await deriveWallet(
    chainType,
    hexToBytes(hash('sha256', `custos simulated bank ${text}`)),
  );
  return address;
}

/** Returns the bank's address on a chain, or undefined for an unsupported chain. */
export function treasuryAddress(caip2: string, environment: FiatEnvironment): Promise<string | undefined> {
  return bankAddress(caip2, `${environment} treasury`);
}

/** The account on a chain from which the bank pays. */
export interface Treasury {
  readonly chain: Simulated;
  /** The address in the ledger's notation. */
  readonly address: string;
  /** US dollars per unit of the asset. */
  readonly price: string;
  /** Funds the treasury on its first use. Must be called in a transaction of the store. */
  stock(): void;
}

/** Returns the bank's account, or undefined for an asset without a price or an unsupported chain. */
export async function treasuryFor(parts: FiatParts, asset: FiatAsset): Promise<Treasury | undefined> {
  const { store, environment } = parts;
  const { caip2 } = asset;
  const [chain, prices] = await Promise.all([parts.chain(caip2), parts.prices.inUsd([asset.asset, 'sol'])]);
  const price = prices.get(asset.asset);
  const address = await treasuryAddress(caip2, environment);
  if (chain === undefined || price === undefined || address === undefined) return undefined;
  const payer = toLedger(caip2, address);
  const supplies = [{ ...asset, price }];
  // The treasury pays for the token accounts that it creates.
  if (caip2.startsWith('solana:')) {
    supplies.push({
      ...asset,
      asset: 'sol',
      tokenAddress: null,
      decimals: 9,
      price: prices.get('sol') ?? '1',
    });
  }
  const stock = (): void => {
    for (const supply of supplies) {
      const key = [environment, caip2, toLedger(caip2, supply.tokenAddress)];
      const known = 'select 1 from fiat_stocks where environment = ? and caip2 = ? and asset = ?';
      if (store.first(known, ...key) !== undefined) continue;
      const { tokenAddress, decimals } = supply;
      const rawAmount = rawAmountWorth(STOCK_USD, supply);
      const symbol = supply.asset.toUpperCase();
      if (tryToPay(store, chain, { address, tokenAddress, decimals, symbol, rawAmount }) === undefined)
        continue;
      store.run('insert into fiat_stocks values (?, ?, ?)', ...key);
    }
  };
  return { chain, address: payer, price, stock };
}

/** Pays atomically. Returns undefined if the payment fails. */
export function tryToPay(store: ChainStore, chain: Simulated, deposit: Deposit): Funded | undefined {
  try {
    return store.atomically(() => chain.fund(deposit));
  } catch (error) {
    if (error instanceof RevertError || error instanceof InvalidDepositError) return undefined;
    throw error;
  }
}
