import { sha256 } from '@noble/hashes/sha2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesToHex, concatBytes, hexToBytes } from '../../../../engine/crypto/encoding.ts';
import { ecBackend } from '../../../../engine/crypto/secp256k1.ts';
import { decodeTokenCall, type TokenCall } from '../../../../engine/signing/ethereum/contract-calls.ts';
import { InvalidTransactionError } from '../../../../engine/signing/signing-errors.ts';
import { decodeTronRawData } from '../../../../engine/signing/tron/raw-data.ts';
import { tronAddressText } from '../../../../engine/signing/tron/signer.ts';
import { type Sentinel, sentinelOf } from '../sentinels.ts';

const SIGNATURE_BYTES = 65;

/** A decoded TRON transaction, ready for execution. Addresses are in `T…` notation, amounts in sun. */
export interface TronPlan {
  readonly owner: string;
  /** The recipient of a transfer, or the called contract. */
  readonly to: string;
  readonly amount: bigint;
  readonly isContractCall: boolean;
  /** The TRC-20 call in the calldata. Null if the calldata is anything else. */
  readonly token: TokenCall | null;
  readonly feeLimit: bigint;
  readonly expirationMs: number;
  readonly refBlockBytes: string;
  readonly refBlockHash: string;
  readonly wireBytes: number;
  readonly sentinel: Sentinel | null;
}

/**
 * Decodes raw data into an execution plan and computes the transaction id.
 *
 * @throws InvalidTransactionError
 */
export function decodeUnsigned(rawBytes: Uint8Array): { hash: string; plan: TronPlan } {
  const rawData = decodeTronRawData(rawBytes);
  const contract = rawData?.contract[0];
  if (rawData === undefined || contract === undefined) {
    throw new InvalidTransactionError('', 'expected the raw data of a TRON transaction');
  }
  const isContractCall = contract.type === 'TriggerSmartContract';
  const toHex = isContractCall ? contract.contract_address : contract.to_address;
  const call = isContractCall ? decodeTokenCall(hexToBytes(contract.data ?? '')) : undefined;
  const tokenRecipient = call === undefined || call.name === 'approve' ? [] : [call.to];
  return {
    hash: bytesToHex(sha256(rawBytes)),
    plan: {
      owner: tronAddressText(hexToBytes(contract.owner_address)),
      to: tronAddressText(hexToBytes(toHex)),
      amount: BigInt((isContractCall ? contract.call_value : contract.amount) ?? 0),
      isContractCall,
      token: call === undefined ? null : inTronAddresses(call),
      feeLimit: BigInt(rawData.fee_limit ?? 0),
      expirationMs: rawData.expiration,
      refBlockBytes: rawData.ref_block_bytes,
      refBlockHash: rawData.ref_block_hash,
      wireBytes: rawBytes.length + SIGNATURE_BYTES,
      sentinel: sentinelOf([toHex, ...tokenRecipient]) ?? null,
    },
  };
}

/**
 * Decodes raw data || signature (r || s || v).
 *
 * @throws InvalidTransactionError
 */
export function decodeSigned(signedBytes: Uint8Array): { hash: string; plan: TronPlan; isSigned: boolean } {
  const rawBytes = signedBytes.subarray(0, Math.max(0, signedBytes.length - SIGNATURE_BYTES));
  const decoded = decodeUnsigned(rawBytes);
  return {
    ...decoded,
    isSigned: signerOf(rawBytes, signedBytes.subarray(rawBytes.length)) === decoded.plan.owner,
  };
}

function signerOf(rawBytes: Uint8Array, signature: Uint8Array): string | undefined {
  const recoveryId = (signature[64] ?? 0) - 27;
  if (recoveryId !== 0 && recoveryId !== 1) return undefined;
  try {
    const publicKey = ecBackend.recover({ compact: signature.slice(0, 64), recoveryId }, sha256(rawBytes));
    return tronAddressText(concatBytes(Uint8Array.of(0x41), keccak_256(publicKey.subarray(1)).subarray(12)));
  } catch {
    return undefined;
  }
}

function inTronAddresses(call: TokenCall): TokenCall {
  if (call.name === 'approve') return { ...call, spender: tronAddress(call.spender) };
  if (call.name === 'transfer') return { ...call, to: tronAddress(call.to) };
  return { ...call, from: tronAddress(call.from), to: tronAddress(call.to) };
}

function tronAddress(evmAddress: string): string {
  return tronAddressText(hexToBytes(`41${evmAddress.slice(2)}`));
}
