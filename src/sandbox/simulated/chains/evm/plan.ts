import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesTo0xHex, hexToBytes } from '../../../../engine/crypto/encoding.ts';
import {
  decodeEthereumTransaction,
  recoverAuthority,
  recoverEthereumSender,
  recoverFeePayer,
} from '../../../../engine/signing/ethereum/any-transaction.ts';
import { decodeBatch } from '../../../../engine/signing/ethereum/batch-executor.ts';
import {
  decodeTokenCall,
  swapRouter,
  tokenVault,
} from '../../../../engine/signing/ethereum/contract-calls.ts';
import type { EthereumTransactionView } from '../../../../engine/signing/ethereum/transaction.ts';
import { type Sentinel, sentinelOf } from '../sentinels.ts';
import type { AccessList } from './interpreter.ts';

/** One call of a transaction. Addresses and data are lower-case 0x hex. */
export interface PlannedCall {
  /** Null for the creation of a smart contract. */
  readonly to: string | null;
  readonly value: bigint;
  readonly data: string;
}

export interface PlannedAuthorization {
  readonly contract: string;
  readonly chainId: number;
  readonly nonce: bigint;
  /** The signer; null if the signature is invalid. */
  readonly authority: string | null;
}

/** A decoded EVM transaction, ready for execution. */
export interface EvmPlan {
  /** The signed transaction, 0x hex; null for a user operation. */
  readonly raw: string | null;
  /** The signed user operation, 0x hex; undefined for a transaction. */
  readonly operation?: string;
  readonly sender: string;
  /** The account that pays the gas. It differs from the sender for user operations and on Tempo. */
  readonly feePayer: string;
  /** The fee token of a Tempo transaction. */
  readonly feeToken: string | null;
  readonly calls: readonly PlannedCall[];
  readonly authorizations: readonly PlannedAuthorization[];
  readonly accessList: AccessList;
  readonly gasLimit: bigint;
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
  readonly intrinsicGas: bigint;
  /** The minimum gas for the calldata (EIP-7623). */
  readonly floorGas: bigint;
  /** The beginning of the validity window, in Unix seconds. */
  readonly validAfter: number;
  readonly validBefore: number | null;
  readonly sentinel: Sentinel | null;
}

export interface DecodedTransaction {
  readonly hash: string;
  readonly chainId: number | undefined;
  readonly nonce: bigint;
  /** The key of a two-dimensional nonce, or '' for an ordinary nonce. */
  readonly lane: string;
  readonly plan: EvmPlan;
}

/**
 * Decodes signed bytes into an execution plan.
 *
 * @param impersonated the sender, if the sender has not signed the transaction.
 * @throws InvalidTransactionError
 */
export async function decodeSigned(
  signedBytes: Uint8Array,
  impersonated?: string,
): Promise<DecodedTransaction> {
  const hex = bytesTo0xHex(signedBytes);
  const view = await decodeEthereumTransaction(hex);
  const sender = impersonated ?? (await recoverEthereumSender(hex, view));
  const calls = view.calls.map((call) => ({
    to: call.to ?? null,
    value: call.value,
    data: call.data.toLowerCase(),
  }));
  const maxFeePerGas = view.maxFeePerGas ?? view.gasPrice ?? 0n;
  const nonceKey = view.tempo?.nonceKey ?? 0n;
  return {
    hash: bytesTo0xHex(keccak_256(signedBytes)),
    chainId: view.chainId,
    nonce: view.nonce,
    lane: nonceKey === 0n ? '' : nonceKey.toString(16),
    plan: {
      raw: hex,
      sender,
      feePayer: await recoverFeePayer(hex, view, sender),
      feeToken: view.tempo?.feeToken?.toLowerCase() ?? null,
      calls,
      authorizations: planAuthorizations(view.authorizations),
      accessList: view.accessList,
      gasLimit: view.gasLimit,
      maxFeePerGas,
      // In older transaction types, everything that the gas price exceeds the base fee by is the tip.
      maxPriorityFeePerGas: view.maxPriorityFeePerGas ?? view.gasPrice ?? 0n,
      ...gasBefore(calls, view),
      validAfter: view.tempo?.validAfter ?? 0,
      validBefore: view.tempo?.validBefore ?? null,
      sentinel: sentinelAmong(calls) ?? null,
    },
  };
}

export function planAuthorizations(
  authorizations: EthereumTransactionView['authorizations'],
): PlannedAuthorization[] {
  return authorizations.map((authorization) => ({
    contract: authorization.contract.toLowerCase(),
    chainId: authorization.chainId,
    nonce: authorization.nonce,
    authority: recoverAuthority(authorization) ?? null,
  }));
}

/**
 * Returns the intrinsic gas: 21000 + 4 or 16 per byte of calldata + 32000 for the creation of a contract + the access
 * list + 25000 per authorization. Source: EIP-2028, 2930, 3860 and 7702; EIP-7623 for the floor.
 */
export function gasBefore(
  calls: readonly PlannedCall[],
  { accessList, authorizations }: Pick<EthereumTransactionView, 'accessList' | 'authorizations'>,
): Pick<EvmPlan, 'intrinsicGas' | 'floorGas'> {
  let intrinsicGas = 21_000n + 25_000n * BigInt(authorizations.length);
  let tokens = 0n;
  for (const { to, data } of calls) {
    const bytes = hexToBytes(data.slice(2));
    const zeros = bytes.reduce((count, byte) => count + (byte === 0 ? 1 : 0), 0);
    tokens += BigInt(zeros + 4 * (bytes.length - zeros));
    if (to === null) intrinsicGas += 32_000n + 2n * BigInt(Math.ceil(bytes.length / 32));
  }
  for (const { storageKeys } of accessList) intrinsicGas += 2_400n + 1_900n * BigInt(storageKeys.length);
  return { intrinsicGas: intrinsicGas + 4n * tokens, floorGas: 21_000n + 10n * tokens };
}

/** Finds a recipient address that triggers a simulated fault. Returns undefined if there is none. */
export function sentinelAmong(calls: readonly PlannedCall[]): Sentinel | undefined {
  return sentinelOf(calls.flatMap(recipientsOf));
}

/** Returns the recipients of a call, including those inside batches, token transfers, swaps and vault calls. */
function recipientsOf({ to, data }: { to: string | null; data: string }): string[] {
  const bytes = hexToBytes(data.slice(2));
  const batch = decodeBatch(bytes) ?? [];
  const inner = batch.flatMap((call) => recipientsOf({ to: call.to, data: bytesTo0xHex(call.data) }));
  const token = decodeTokenCall(bytes);
  const recipient = token === undefined || token.name === 'approve' ? [] : [token.to];
  const paid = paidAccount(bytes);
  return [...(to === null ? [] : [to]), ...recipient, ...(paid === undefined ? [] : [paid]), ...inner];
}

/** Returns the account that a call of the router or of a vault pays, or undefined for other calls. */
function paidAccount(data: Uint8Array): string | undefined {
  const swap = swapRouter.decodeCall(data);
  // The last three arguments of every swap function are the path, the recipient and the deadline.
  if (swap?.name.startsWith('swap')) return swap.args.at(-2) as string;
  const call = tokenVault.decodeCall(data);
  return call?.name === 'withdraw' || call?.name === 'redeem' ? (call.args[1] as string) : undefined;
}
