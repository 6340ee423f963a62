import assert from 'node:assert/strict';
import { bytesTo0xHex, bytesToHex } from '../crypto/encoding.ts';
import { parseTronAddress } from '../policy/values.ts';
import type { BatchCall } from '../signing/ethereum/batch-executor.ts';
import { encodeTokenCall } from '../signing/ethereum/contract-calls.ts';
import type { TronContract } from '../signing/tron/raw-data.ts';

// Builds the transfer transaction of each chain, without the values that only the chain has. For Solana, see
// `encodeSolanaTransfer`.

/** A movement of one asset to an address of the same chain. */
export interface Movement {
  /** The contract or mint; null for the native asset. */
  readonly tokenAddress: string | null;
  /** The amount in base units. */
  readonly rawAmount: bigint;
  readonly to: string;
}

/** The call that moves an asset on an EVM chain. */
export function transferCall({ tokenAddress, rawAmount, to }: Movement): BatchCall {
  if (tokenAddress === null) return { to, value: rawAmount, data: new Uint8Array() };
  const data = encodeTokenCall({ name: 'transfer', to: to.toLowerCase(), amount: rawAmount });
  return { to: tokenAddress, value: 0n, data };
}

/** The fields of the transfer call in a transaction of its own. */
export function ethereumTransfer(
  movement: Movement,
): { readonly to: string; readonly value: string } | { readonly to: string; readonly data: string } {
  const { to, value, data } = transferCall(movement);
  return data.length === 0 ? { to, value: `0x${value.toString(16)}` } : { to, data: bytesTo0xHex(data) };
}

/** CHOICE: 100 TRX, several times what the most expensive stablecoin transfer burns. */
const FEE_LIMIT_SUN = 100_000_000;

/**
 * The raw data that moves an asset on TRON, without block and times. Addresses: `T…` or `41` and 40 hex digits. An
 * amount of TRX must be a safe integer, which is more than the total supply.
 */
export function tronTransfer(movement: Movement & { readonly from: string }): {
  readonly contract: [TronContract];
  readonly fee_limit: number;
} {
  return { contract: [tronContract(movement)], fee_limit: FEE_LIMIT_SUN };
}

function tronContract({
  tokenAddress,
  rawAmount,
  from,
  to,
}: Movement & { readonly from: string }): TronContract {
  const owner = tronHex(from);
  if (tokenAddress === null) {
    const amount = Number(rawAmount);
    return { type: 'TransferContract', owner_address: owner, to_address: tronHex(to), amount };
  }
  const recipient = `0x${tronHex(to).slice(2)}` as const;
  return {
    type: 'TriggerSmartContract',
    owner_address: owner,
    contract_address: tronHex(tokenAddress),
    data: bytesToHex(encodeTokenCall({ name: 'transfer', to: recipient, amount: rawAmount })),
  };
}

/** A TRON address as 0x41 prefix and 40 hex digits. */
function tronHex(address: string): string {
  const addressHex = parseTronAddress(address);
  assert(addressHex !== undefined, `the addresses of a transfer are read: ${address}`);
  return addressHex;
}
