import { base58ToBytes, bytesToHex } from '../../../engine/crypto/encoding.ts';
import { NATIVE } from '../chains/ledger.ts';
import { sentinelOf } from '../chains/sentinels.ts';
import type { ChainStore } from '../chains/store.ts';
import { InvalidDepositError, type Simulated } from '../chains/world.ts';

/** CHOICE: when the solver first trades an asset on a chain, the faucet gives it an inventory of this value. */
export const INVENTORY_USD = 1_000_000n;

// The solver's accounts by CAIP-2 namespace. Other namespaces are not supported.
const accounts: Readonly<Record<string, string>> = {
  eip155: '0x00000000000000000000000000000000000501fe',
  solana: 'So1ver1111111111111111111111111111111111111',
  tron: 'T9yD14Nj9j7xAB4dbGeiX9h8xpnf1MCC13',
};

/** Returns the solver's account on a chain, or undefined for an unsupported chain. */
export function solverOn(caip2: string): string | undefined {
  return accounts[namespaceOf(caip2)];
}

/** Converts an account's or a token's address to the ledger's notation. */
export function toLedger(caip2: string, text: string | null): string {
  if (text === null) return NATIVE;
  return namespaceOf(caip2) === 'eip155' ? text.toLowerCase() : text;
}

/** Returns whether the recipient is the sentinel that makes transactions revert. */
export function isUnpayable(caip2: string, address: string): boolean {
  const hex =
    namespaceOf(caip2) === 'eip155'
      ? address.slice(2).toLowerCase()
      : // A TRON address is compared without its 4 checksum bytes.
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
 * Funds the solver's inventory of an asset from the faucet, once. Returns false if that would exceed the chain's
 * maximum supply.
 *
 * INVARIANT: apart from this inventory, the solver pays only from deposits that it has received.
 */
export function ensureInventory(store: ChainStore, chain: Simulated, supply: Supply): boolean {
  const { caip2, tokenAddress, ...rest } = supply;
  const key = [caip2, toLedger(caip2, tokenAddress)];
  if (store.first('select 1 from exchange_stocks where caip2 = ? and asset = ?', ...key) !== undefined) {
    return true;
  }
  try {
    chain.fund({ address: solverOn(caip2)!, tokenAddress, ...rest });
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
