import { keccak_256 } from '@noble/hashes/sha3.js';
import * as Authorization from 'ox/Authorization';
import * as Eip1559 from 'ox/TxEnvelopeEip1559';
import * as Eip2930 from 'ox/TxEnvelopeEip2930';
import * as Eip7702 from 'ox/TxEnvelopeEip7702';
import * as Legacy from 'ox/TxEnvelopeLegacy';
import { bytesTo0xHex, hexToBytes } from '../../crypto/encoding.ts';
import { ecBackend } from '../../crypto/secp256k1.ts';
import { InvalidTransactionError } from '../signing-errors.ts';
import type { EthereumTransactionView } from './transaction.ts';

type Hex = `0x${string}`;

const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

const SIGN_PAYLOADS = {
  '0x01': (hex: Hex) => Eip2930.getSignPayload(Eip2930.deserialize(hex as never)),
  '0x02': (hex: Hex) => Eip1559.getSignPayload(Eip1559.deserialize(hex as never)),
  '0x04': (hex: Hex) => Eip7702.getSignPayload(Eip7702.deserialize(hex as never)),
} as const;

/**
 * The signer of a transaction as lower-case 0x hex.
 *
 * @param view the result of `decodeEthereumTransaction` for the same bytes.
 * @throws InvalidTransactionError when the transaction is unsigned or not signed by a secp256k1 key.
 */
export async function recoverEthereumSender(serialized: Hex, view: EthereumTransactionView): Promise<string> {
  if (view.tempo !== undefined) {
    const { recoverTempoSender } = await import('./tempo-transaction.ts');
    return recoverTempoSender(serialized, recoverSigner);
  }
  const prefix = serialized.slice(0, 4);
  const payload = Object.hasOwn(SIGN_PAYLOADS, prefix)
    ? SIGN_PAYLOADS[prefix as keyof typeof SIGN_PAYLOADS](serialized)
    : Legacy.getSignPayload(Legacy.deserialize(serialized) as never);
  return recoverSigner(payload, view.signature);
}

/**
 * The account that pays the gas: on Tempo the signer of the fee payer signature, if any, otherwise the sender.
 *
 * @throws InvalidTransactionError
 */
export async function recoverFeePayer(
  serialized: Hex,
  view: EthereumTransactionView,
  sender: string,
): Promise<string> {
  const signature = view.tempo?.feePayerSignature;
  if (signature === undefined) return sender;
  const { feePayerPayload } = await import('./tempo-transaction.ts');
  return recoverSigner(feePayerPayload(serialized, sender), signature);
}

/**
 * The signer of a 32-byte digest.
 *
 * @param signature r || s || v with v = 27 or 28, 0x hex.
 * @throws InvalidTransactionError
 */
export function recoverDigestSigner(digest: Uint8Array, signature: string): string {
  const v = Number.parseInt(signature.slice(-2), 16);
  return recoverSigner(bytesTo0xHex(digest), `${signature.slice(0, -2)}0${v - 27}`);
}

/**
 * The signer of an EIP-7702 authorization. Undefined when the signature is invalid; the authorization then has no
 * effect.
 */
export function recoverAuthority(
  authorization: EthereumTransactionView['authorizations'][number],
): string | undefined {
  const { contract, chainId, nonce, signature } = authorization;
  // keccak256(0x05 || rlp([chainId, address, nonce]))
  const payload = Authorization.getSignPayload({ address: contract as Hex, chainId, nonce });
  try {
    return recoverSigner(payload, signature);
  } catch {
    return undefined;
  }
}

/**
 * The signer of a payload.
 *
 * @param signature r || s || parity as 0x hex.
 * @throws InvalidTransactionError
 */
function recoverSigner(payload: Hex, signature: string | undefined): string {
  try {
    const bytes = hexToBytes((signature ?? '0x').slice(2));
    if (bytes.length !== 65) throw new Error('expected 65 bytes');
    const recovered = { compact: bytes.slice(0, 64), recoveryId: bytes[64]! };
    // EIP-2: only the signature with s in the lower half is valid.
    if (BigInt(bytesTo0xHex(bytes.subarray(32, 64))) > HALF_ORDER) throw new Error('expected a low s');
    const publicKey = ecBackend.recover(recovered, hexToBytes(payload.slice(2)));
    return bytesTo0xHex(keccak_256(publicKey.subarray(1)).subarray(12));
  } catch {
    throw new InvalidTransactionError('', 'expected a secp256k1 signature');
  }
}
