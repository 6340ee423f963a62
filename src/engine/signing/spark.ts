import { secp256k1 } from '@noble/curves/secp256k1.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bech32, bech32m, createBase58check } from '@scure/base';
import { bytesToHex, bytesToUtf8, concatBytes, hexToBytes, utf8ToBytes } from '../crypto/encoding.ts';
import { ecBackend, encodeDerSignature } from '../crypto/secp256k1.ts';
import { type ChainSigner, compressedKey, signDigestCompact } from './chain-signer.ts';
import { parseMessage } from './fields.ts';
import { InvalidTransactionError } from './signing-errors.ts';

// The SparkAddress protobuf: field 1 (bytes), the 33-byte identity key
const IDENTITY_KEY_FIELD = Uint8Array.of(0x0a, 0x21);
const PREFIX = { mainnet: 'spark', regtest: 'sparkrt' } as const;

/** Signs for Spark accounts, whose address is derived from the identity key. Source: Spark SDK, address encoding. */
export const sparkSigner: ChainSigner = {
  walletKeys(secret, { sparkNetwork = 'mainnet' }) {
    const key = compressedKey(secret);
    const words = bech32m.toWords(concatBytes(IDENTITY_KEY_FIELD, key));
    return { address: bech32m.encode(PREFIX[sparkNetwork], words, false), publicKey: bytesToHex(key) };
  },
  signPayload: signDigestCompact,
};

export type SparkNetworkName = 'MAINNET' | 'REGTEST';

/** Returns the address of an identity key (compressed, hex) on a network. */
export function sparkAddress(publicKeyHex: string, network: SparkNetworkName): string {
  const words = bech32m.toWords(concatBytes(IDENTITY_KEY_FIELD, hexToBytes(publicKeyHex)));
  return bech32m.encode(prefixOf(network), words, false);
}

/** Returns the identity key (compressed, hex) in a Spark address on the network, or undefined for any other string. */
export function readSparkAddress(text: string, network: SparkNetworkName): string | undefined {
  const bytes = readBech32m(text, prefixOf(network));
  const isAddress = bytes?.length === 35 && bytes[0] === 0x0a && bytes[1] === 0x21;
  return isAddress ? bytesToHex(bytes.subarray(2)) : undefined;
}

/** Returns whether `text` is a compressed secp256k1 key in hex. */
export function isIdentityKey(text: string): boolean {
  if (!/^0[23][0-9a-fA-F]{64}$/.test(text)) return false;
  return secp256k1.utils.isValidPublicKey(hexToBytes(text), true);
}

/** Returns the 32 bytes of a token identifier, as hex. Returns undefined for any other string. */
export function readTokenIdentifier(text: string, network: SparkNetworkName): string | undefined {
  const bytes = readBech32m(text, network === 'MAINNET' ? 'btkn' : 'btknrt');
  return bytes?.length === 32 ? bytesToHex(bytes) : undefined;
}

function prefixOf(network: SparkNetworkName): string {
  return network === 'MAINNET' ? PREFIX.mainnet : PREFIX.regtest;
}

function readBech32m(text: string, prefix: string): Uint8Array | undefined {
  try {
    const decoded = bech32m.decode(text as `${string}1${string}`, false);
    return decoded.prefix === prefix ? bech32m.fromWords(decoded.words) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns a key's static deposit address. Bitcoin sent to this Taproot address can be claimed on Spark.
 *
 * CHOICE: real operators return an address of a key that they share with the owner. Here it is the Taproot output of
 * the identity key itself (BIP-341, key path only), which the owner could also spend on layer 1.
 */
export function sparkDepositAddress(publicKeyHex: string, network: SparkNetworkName): string {
  const internalKey = hexToBytes(publicKeyHex).subarray(1);
  const tag = sha256(utf8ToBytes('TapTweak'));
  // Q = lift_x(P) + H_TapTweak(P) * G
  const tweak = BigInt(`0x${bytesToHex(sha256(concatBytes(tag, tag, internalKey)))}`);
  const point = secp256k1.Point.fromHex(`02${bytesToHex(internalKey)}`);
  const output = point.add(secp256k1.Point.BASE.multiply(tweak)).toBytes(true).subarray(1);
  const words = [1, ...bech32m.toWords(output)];
  return bech32m.encode(network === 'MAINNET' ? 'bc' : 'bcrt', words, 90);
}

/**
 * Executes `signMessageWithIdentityKey`: returns the signature over sha256(UTF-8 message) as hex without 0x, in DER
 * or, with `compact`, as r || s.
 *
 * @throws InvalidFieldError
 */
export function signWithIdentityKey(
  secret: Uint8Array,
  params: { readonly message: string; readonly compact?: boolean | undefined },
): string {
  const message = parseMessage(params.message, 'utf-8', '/message');
  const { compact } = ecBackend.sign(sha256(message), secret);
  return bytesToHex(params.compact === true ? compact : encodeDerSignature(compact));
}

/** A Spark operation that moves sats or tokens. Amounts are decimal strings in sats or in the token's base units. */
export interface SparkOperation {
  /** A random id, which makes every operation unique. */
  readonly id: string;
  readonly network: SparkNetworkName;
  /** The sender's compressed identity key in hex. */
  readonly owner: string;
  /** The owner's Spark address. For the claim of a deposit, the owner's deposit address. */
  readonly from: string;
  readonly to: string;
  /** The token identifier; null for sats. */
  readonly token: string | null;
  readonly amount: string;
  /** The fee in sats, which `from` pays in addition to the amount. */
  readonly fee: string;
  /** The id of the Bitcoin transaction whose deposit is claimed; null for other operations. */
  readonly deposit: string | null;
  /** The Lightning invoice to pay, in lower case. */
  readonly invoice?: string | undefined;
}

/** An operation with its owner's signature: r || s over the SHA-256 of the operation's JSON, in hex. */
interface SignedSparkOperation {
  readonly operation: SparkOperation;
  readonly signature: string;
}

/**
 * Signs an operation with the identity key. Returns r || s in hex.
 *
 * CHOICE: real Spark operators run a protocol of many messages. The simulated operators accept this single signed
 * message.
 */
export function signSparkOperation(secret: Uint8Array, operation: SparkOperation): string {
  return bytesToHex(ecBackend.sign(digestOf(operation), secret).compact);
}

/** Returns the bytes that Spark operators accept. `hash` is the signed digest. */
export function encodeSparkOperation(signed: SignedSparkOperation): { bytes: Uint8Array; hash: string } {
  return { bytes: utf8ToBytes(JSON.stringify(signed)), hash: bytesToHex(digestOf(signed.operation)) };
}

/**
 * Decodes a signed operation and verifies its owner's signature.
 *
 * @throws InvalidTransactionError
 */
export function decodeSparkOperation(bytes: Uint8Array): { operation: SparkOperation; hash: string } {
  try {
    const { operation, signature } = JSON.parse(bytesToUtf8(bytes) ?? '') as SignedSparkOperation;
    const digest = digestOf(operation);
    if (ecBackend.verify(hexToBytes(signature), digest, hexToBytes(operation.owner))) {
      return { operation, hash: bytesToHex(digest) };
    }
  } catch {
    // The error below rejects the bytes.
  }
  throw new InvalidTransactionError('', 'expected an operation signed by its owner');
}

function digestOf(operation: SparkOperation): Uint8Array {
  return sha256(utf8ToBytes(JSON.stringify(operation)));
}

const base58check = createBase58check(sha256);
// The bech32 human-readable part and the version bytes of P2PKH and P2SH addresses, by network.
const networks = {
  MAINNET: { prefix: 'bc', versions: [0x00, 0x05] },
  REGTEST: { prefix: 'bcrt', versions: [0x6f, 0xc4] },
} as const satisfies Record<SparkNetworkName, object>;

/** Returns whether the string is a Bitcoin address on the network: segwit (BIP-173, BIP-350) or base58check. */
export function isLayer1Address(text: string, network: SparkNetworkName): boolean {
  return isSegwit(text, networks[network].prefix) || isBase58(text, networks[network].versions);
}

function isSegwit(text: string, prefix: string): boolean {
  const [, , version] = /^(bc|bcrt)1(.)/i.exec(text) ?? [];
  try {
    // Witness version 0 uses the BIP-173 checksum, later versions use the checksum of BIP-350.
    const codec = version?.toLowerCase() === 'q' ? bech32 : bech32m;
    const decoded = codec.decode(text as `${string}1${string}`);
    const [witness = 0, ...program] = decoded.words;
    const { length } = codec.fromWords(program);
    if (decoded.prefix !== prefix || witness > 16) return false;
    return witness === 0 ? length === 20 || length === 32 : length >= 2 && length <= 40;
  } catch {
    return false;
  }
}

function isBase58(text: string, versions: readonly number[]): boolean {
  try {
    const bytes = base58check.decode(text);
    return bytes.length === 21 && versions.includes(bytes[0]!);
  } catch {
    return false;
  }
}
