import { secp256k1 } from '@noble/curves/secp256k1.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bech32m } from '@scure/base';
import { bytesToHex, concatBytes, hexToBytes, utf8ToBytes } from '../crypto/encoding.ts';
import { ecBackend } from '../crypto/secp256k1.ts';
import type { ChainSigner } from './chain-signer.ts';
import { compressedKey, signDigestCompact } from './chain-signer.ts';
import { encodeDerSignature } from './der-signature.ts';
import { parseMessage } from './fields.ts';

// The SparkAddress protobuf: field 1 (bytes), the 33-byte identity key
const IDENTITY_KEY_FIELD = Uint8Array.of(0x0a, 0x21);
const PREFIX = { mainnet: 'spark', regtest: 'sparkrt' } as const;

/** Spark accounts: addresses of the identity key. Source: Spark SDK, address encoding. */
export const sparkSigner: ChainSigner = {
  walletKeys(secret, { sparkNetwork = 'mainnet' }) {
    const key = compressedKey(secret);
    const words = bech32m.toWords(concatBytes(IDENTITY_KEY_FIELD, key));
    return { address: bech32m.encode(PREFIX[sparkNetwork], words, false), publicKey: bytesToHex(key) };
  },
  signPayload: signDigestCompact,
};

export type SparkNetworkName = 'MAINNET' | 'REGTEST';

/** The address of an identity key (compressed, hex) on a network. */
export function sparkAddress(publicKeyHex: string, network: SparkNetworkName): string {
  const words = bech32m.toWords(concatBytes(IDENTITY_KEY_FIELD, hexToBytes(publicKeyHex)));
  return bech32m.encode(prefixOf(network), words, false);
}

/** The identity key (compressed, hex) in a Spark address on the network; undefined for any other text. */
export function readSparkAddress(text: string, network: SparkNetworkName): string | undefined {
  const bytes = readBech32m(text, prefixOf(network));
  const isAddress = bytes?.length === 35 && bytes[0] === 0x0a && bytes[1] === 0x21;
  return isAddress ? bytesToHex(bytes.subarray(2)) : undefined;
}

/** Whether `text` is a compressed secp256k1 key in hex. */
export function isIdentityKey(text: string): boolean {
  if (!/^0[23][0-9a-fA-F]{64}$/.test(text)) return false;
  return secp256k1.utils.isValidPublicKey(hexToBytes(text), true);
}

/** The 32 bytes of a token identifier, as hex; undefined for any other text. */
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
 * The static deposit address. Bitcoin that is sent to this Taproot address can be claimed on Spark.
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
 * `signMessageWithIdentityKey`: returns the signature over sha256(UTF-8 message) as hex without 0x, in DER or, with
 * `compact`, as r || s.
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
