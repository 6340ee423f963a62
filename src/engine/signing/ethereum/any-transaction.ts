import { keccak_256 } from '@noble/hashes/sha3.js';
import * as Authorization from 'ox/Authorization';
import * as Eip1559 from 'ox/TxEnvelopeEip1559';
import * as Eip2930 from 'ox/TxEnvelopeEip2930';
import * as Eip7702 from 'ox/TxEnvelopeEip7702';
import * as Legacy from 'ox/TxEnvelopeLegacy';
import { bytesTo0xHex, hexToBytes } from '../../crypto/encoding.ts';
import { ecBackend } from '../../crypto/secp256k1.ts';
import { loadOnce } from '../../load-once.ts';
import { parseEvmAddress } from '../fields.ts';
import { InvalidTransactionError } from '../signing-errors.ts';
import { ethereumAddress, signatureHex, signatureTuple } from './signer.ts';
import type { TempoTransaction } from './tempo-transaction.ts';
import {
  type EthereumTransactionView,
  type PreparedTransaction,
  prepareTransaction,
  type StandardTransaction,
} from './transaction.ts';

type Hex = `0x${string}`;

// Handles transactions of every type: the standard types and those of Tempo.

/**
 * If the signing bytes are longer than this (in hex characters), other work may run between validating and signing.
 * Shorter ones take a few milliseconds.
 */
const LARGE_CHARACTERS = 200_000;

const loadTempo = loadOnce(() => import('./tempo-transaction.ts'));

export type EthereumTransaction = StandardTransaction | TempoTransaction;

/**
 * Executes `eth_signTransaction`: returns the signed wire bytes as 0x hex, with exactly the given fields. Supports
 * types 0 (EIP-155 with a chain id), 1 (EIP-2930), 2 (EIP-1559), 4 (EIP-7702) and 118 (Tempo). `from`, if given, must
 * be the wallet.
 *
 * @throws InvalidTransactionError, InvalidFieldError
 */
export async function signEthereumTransaction(
  secret: Uint8Array,
  params: { readonly transaction: EthereumTransaction },
): Promise<`0x${string}`> {
  const prepared = await prepareEthereumTransaction(params.transaction);
  assertFrom(secret, params.transaction.from);
  return signPreparedTransaction(secret, prepared);
}

/** Signs a validated transaction. Returns the wire bytes as 0x hex; their keccak256 is the transaction hash. */
export function signPreparedTransaction(secret: Uint8Array, prepared: PreparedTransaction): `0x${string}` {
  const digest = keccak_256(hexToBytes(prepared.signingBytes().slice(2)));
  return prepared.wireBytes(signatureTuple(ecBackend.sign(digest, secret)));
}

/**
 * Validates a transaction of any type. Policies evaluate `decodeEthereumTransaction(prepared.wireBytes())`.
 *
 * @throws InvalidTransactionError, InvalidFieldError
 */
export async function prepareEthereumTransaction(
  transaction: EthereumTransaction,
): Promise<PreparedTransaction> {
  const prepared = isTempo(transaction)
    ? (await loadTempo()).prepareTempoTransaction(transaction)
    : prepareTransaction(transaction);
  // The longest access lists take 20 ms to read, and another 20 ms to decode or to hash.
  if (prepared.signingBytes().length > LARGE_CHARACTERS)
    await new Promise((resolve) => setImmediate(resolve));
  return prepared;
}

function isTempo(transaction: EthereumTransaction): transaction is TempoTransaction {
  return transaction.type === 118;
}

function assertFrom(secret: Uint8Array, from: string | undefined): void {
  if (from === undefined) return;
  const address = ethereumAddress(secret);
  if (parseEvmAddress(from, '/transaction/from') !== address.toLowerCase()) {
    throw new InvalidTransactionError(
      '/transaction/from',
      `expected the wallet's address \`${address}\`, got \`${from}\``,
    );
  }
}

/** The union of the decoded envelopes of the four standard types. */
interface Envelope {
  readonly chainId?: number | undefined;
  readonly nonce?: bigint | undefined;
  readonly gas?: bigint | undefined;
  readonly to?: string | null | undefined;
  readonly value?: bigint | undefined;
  readonly data?: string | undefined;
  readonly gasPrice?: bigint | undefined;
  readonly maxFeePerGas?: bigint | undefined;
  readonly maxPriorityFeePerGas?: bigint | undefined;
  readonly authorizationList?: Authorization.List<true> | undefined;
  readonly accessList?: readonly { address: string; storageKeys: readonly string[] }[] | undefined;
  readonly r?: string | undefined;
  readonly s?: string | undefined;
  readonly yParity?: number | undefined;
}

const CODECS = {
  '0x01': { type: 1, decode: Eip2930.deserialize, encode: Eip2930.serialize },
  '0x02': { type: 2, decode: Eip1559.deserialize, encode: Eip1559.serialize },
  '0x04': { type: 4, decode: Eip7702.deserialize, encode: Eip7702.serialize },
} as const;

/**
 * Decodes wire bytes (0x hex, signed or unsigned) of any transaction type. Rejects bytes that differ from the canonical
 * encoding of the decoded transaction. Source: EIP-155, 2718, 2930, 1559, 7702; Tempo 0x76.
 *
 * @throws InvalidTransactionError
 */
export async function decodeEthereumTransaction(serialized: string): Promise<EthereumTransactionView> {
  const hex = serialized.toLowerCase() as Hex;
  const prefix = hex.slice(0, 4);
  if (prefix === '0x76') return (await loadTempo()).decodeTempoTransaction(hex);
  try {
    const { type, envelope, reencoded } = decodeStandard(prefix, hex);
    if (reencoded === hex) return toView(type, envelope);
  } catch {
    // The error below rejects the bytes.
  }
  const expected =
    prefix === '0x03'
      ? 'expected a transaction without blobs (of type 0, 1, 2 or 4)'
      : 'expected a serialized transaction in canonical encoding';
  throw new InvalidTransactionError('', expected);
}

// Uses `as never`, because each codec's types require its literal prefix, which is only known at run time.
function decodeStandard(
  prefix: string,
  hex: Hex,
): { type: 0 | 1 | 2 | 4; envelope: Envelope; reencoded: string } {
  if (Object.hasOwn(CODECS, prefix)) {
    const codec = CODECS[prefix as keyof typeof CODECS];
    const envelope = codec.decode(hex as never);
    return { type: codec.type, envelope, reencoded: codec.encode(envelope as never) };
  }
  const envelope = Legacy.deserialize(hex);
  return { type: 0, envelope, reencoded: Legacy.serialize(envelope) };
}

function toView(type: 0 | 1 | 2 | 4, envelope: Envelope): EthereumTransactionView {
  return {
    type,
    chainId: envelope.chainId,
    nonce: envelope.nonce ?? 0n,
    gasLimit: envelope.gas ?? 0n,
    gasPrice: envelope.gasPrice,
    maxFeePerGas: envelope.maxFeePerGas,
    maxPriorityFeePerGas: envelope.maxPriorityFeePerGas,
    calls: [{ to: envelope.to ?? undefined, value: envelope.value ?? 0n, data: envelope.data ?? '0x' }],
    authorizations: (envelope.authorizationList ?? []).map((entry) => ({
      contract: entry.address,
      chainId: entry.chainId,
      nonce: entry.nonce,
      signature: signatureHex(entry) ?? '0x',
    })),
    accessList: envelope.accessList ?? [],
    signature: signatureHex(envelope),
    tempo: undefined,
  };
}

const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

const SIGN_PAYLOADS = {
  '0x01': (hex: Hex) => Eip2930.getSignPayload(Eip2930.deserialize(hex as never)),
  '0x02': (hex: Hex) => Eip1559.getSignPayload(Eip1559.deserialize(hex as never)),
  '0x04': (hex: Hex) => Eip7702.getSignPayload(Eip7702.deserialize(hex as never)),
} as const;

/**
 * Returns the signer of a transaction as lower-case 0x hex.
 *
 * @param view the result of `decodeEthereumTransaction` for the same bytes.
 * @throws InvalidTransactionError if the transaction is unsigned or not signed by a secp256k1 key.
 */
export async function recoverEthereumSender(serialized: Hex, view: EthereumTransactionView): Promise<string> {
  if (view.tempo !== undefined) {
    const { recoverTempoSender } = await loadTempo();
    return recoverTempoSender(serialized, recoverSigner);
  }
  const prefix = serialized.slice(0, 4);
  const payload = Object.hasOwn(SIGN_PAYLOADS, prefix)
    ? SIGN_PAYLOADS[prefix as keyof typeof SIGN_PAYLOADS](serialized)
    : Legacy.getSignPayload(Legacy.deserialize(serialized) as never);
  return recoverSigner(payload, view.signature);
}

/**
 * Returns the account that pays the gas: on Tempo the signer of the fee payer signature, if there is one, else the
 * sender.
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
  const { feePayerPayload } = await loadTempo();
  return recoverSigner(feePayerPayload(serialized, sender), signature);
}

/**
 * Returns the signer of a 32-byte digest as lower-case 0x hex.
 *
 * @param signature r || s || v with v = 27 or 28, 0x hex.
 * @throws InvalidTransactionError
 */
export function recoverDigestSigner(digest: Uint8Array, signature: string): string {
  const v = Number.parseInt(signature.slice(-2), 16);
  return recoverSigner(bytesTo0xHex(digest), `${signature.slice(0, -2)}0${v - 27}`);
}

/**
 * Returns the signer of an EIP-7702 authorization, or undefined if the signature is invalid. The authorization then
 * has no effect.
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
 * Returns the signer of a payload.
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
