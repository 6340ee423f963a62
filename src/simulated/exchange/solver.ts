import { base58ToBytes, bytesToHex } from '../../crypto/encoding.ts';
import { NATIVE } from '../chains/ledger.ts';
import { sentinelOf } from '../chains/sentinels.ts';
import type { ChainStore } from '../chains/store.ts';
import { InvalidDepositError, type Simulated } from '../chains/world.ts';

/** CHOICE: US dollars that the faucet gives the solver of each asset on each chain, when it first trades there. */
export const STOCK_USD = 1_000_000n;

// The solver's account on the chains of each namespace: it deals on no others.
const accounts: Readonly<Record<string, string>> = {
  eip155: '0x00000000000000000000000000000000000501fe',
  solana: 'So1ver1111111111111111111111111111111111111',
  tron: 'T9yD14Nj9j7xAB4dbGeiX9h8xpnf1MCC13',
};

/** The solver's account on a chain; undefined where it has none. */
export function solverOn(caip2: string): string | undefined {
  return accounts[namespaceOf(caip2)];
}

/** An address or token as the ledger of its chain writes it. */
export function inLedger(caip2: string, text: string | null): string {
  if (text === null) return NATIVE;
  return namespaceOf(caip2) === 'eip155' ? text.toLowerCase() : text;
}

/** Whether the recipient is the sentinel whose transactions revert. */
export function isUnpayable(caip2: string, address: string): boolean {
  const hex =
    namespaceOf(caip2) === 'eip155'
      ? address.slice(2).toLowerCase()
      : // Of a TRON address without the four bytes of its checksum.
        bytesToHex(base58ToBytes(address).subarray(0, namespaceOf(caip2) === 'tron' ? 21 : 32));
  return sentinelOf([hex]) === 'reverted';
}

interface Supply {
  readonly caip2: string;
  readonly tokenAddress: string | null;
  readonly decimals: number;
  readonly symbol: string;
  readonly rawAmount: bigint;
}

/**
 * Has the faucet give the solver its stock of an asset, once. False when the chain has no room for it.
 *
 * INVARIANT: beside this, what the solver has was paid to it, and what it pays comes out of that.
 */
export function stockOnce(store: ChainStore, chain: Simulated, supply: Supply): boolean {
  const { caip2, tokenAddress, ...rest } = supply;
  const key = [caip2, inLedger(caip2, tokenAddress)];
  if (store.first('select 1 from exchange_stocks where caip2 = ? and asset = ?', ...key) !== undefined) {
    return true;
  }
  try {
    chain.give({ address: solverOn(caip2)!, tokenAddress, ...rest });
  } catch (error) {
    if (!(error instanceof InvalidDepositError)) throw error;
    return false;
  }
  store.run('insert into exchange_stocks values (?, ?)', ...key);
  return true;
}

function namespaceOf(caip2: string): string {
  return caip2.slice(0, caip2.indexOf(':'));
}
