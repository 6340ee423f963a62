import assert from 'node:assert/strict';
import { entropyToMnemonic, entropyToSeed, mnemonicToEntropy } from '../crypto/bip39.ts';
import { ed25519PublicKey } from '../crypto/ed25519.ts';
import { bytesToBase58, bytesToUtf8, concatBytes, equalBytes, utf8ToBytes } from '../crypto/encoding.ts';
import {
  assertSecret,
  type Chain,
  type ChainType,
  chains,
  deriveAtPath,
  deriveWallet,
  generatePrivateKey,
} from './chains.ts';
import { InvalidImportedKeyError, InvalidPrivateKeyError } from './signing-errors.ts';

const HEX_DIGITS = utf8ToBytes('0123456789abcdef');

/**
 * Converts imported private-key bytes to a 32-byte secret, which the caller must wipe. Every chain accepts 32 bytes;
 * solana also accepts the 64 bytes seed || public key.
 *
 * @throws InvalidPrivateKeyError
 */
export async function privateKeyFromImport(chainType: ChainType, bytes: Uint8Array): Promise<Uint8Array> {
  const secret = chainType === 'solana' && bytes.length === 64 ? readKeyPair(bytes) : bytes.slice();
  try {
    await assertSecret(chainType, secret);
  } catch (error) {
    secret.fill(0);
    throw error;
  }
  return secret;
}

function readKeyPair(bytes: Uint8Array): Uint8Array {
  const seed = bytes.slice(0, 32);
  if (!equalBytes(ed25519PublicKey(seed), bytes.subarray(32))) {
    seed.fill(0);
    throw new InvalidPrivateKeyError('', 'expected the last 32 bytes to be the public key of the first 32');
  }
  return seed;
}

/**
 * Returns a secret as text that other wallets can import, as UTF-8 bytes that the caller must wipe: on solana base58
 * of seed || public key, on every other chain 64 lower-case hex digits without 0x.
 */
export function privateKeyForExport(chainType: ChainType, secret: Uint8Array): Uint8Array {
  return chainType === 'solana' ? keyPairText(secret) : hexText(secret);
}

// NOTE: base58 encoding creates a string, which cannot be wiped.
function keyPairText(secret: Uint8Array): Uint8Array {
  const pair = concatBytes(secret, ed25519PublicKey(secret));
  try {
    return utf8ToBytes(bytesToBase58(pair));
  } finally {
    pair.fill(0);
  }
}

function hexText(secret: Uint8Array): Uint8Array {
  const text = new Uint8Array(secret.length * 2);
  for (const [index, byte] of secret.entries()) {
    text[2 * index] = HEX_DIGITS[byte >> 4] ?? 0;
    text[2 * index + 1] = HEX_DIGITS[byte & 0x0f] ?? 0;
  }
  return text;
}

/** The part of a wallet that is stored only as a sealed secret. */
interface WalletSecret {
  /** The signing key itself, so that signing needs no key derivation. */
  readonly privateKey: Uint8Array;
  /** The BIP-39 entropy from which the key was derived; undefined for a key without a phrase. */
  readonly entropy?: Uint8Array | undefined;
}

const LAYOUT = 1;
const HEAD_BYTES = 2;
/** The length of a private key on every chain. */
const KEY_BYTES = 32;

/** Encodes 0x01 || length of the entropy (one byte, 0 = none) || entropy || private key. */
function encodeWalletSecret({ privateKey, entropy = new Uint8Array(0) }: WalletSecret): Uint8Array {
  const bytes = new Uint8Array(HEAD_BYTES + entropy.length + privateKey.length);
  bytes.set([LAYOUT, entropy.length]);
  bytes.set(entropy, HEAD_BYTES);
  bytes.set(privateKey, HEAD_BYTES + entropy.length);
  return bytes;
}

/** Decodes a wallet's secret. The fields are views into `bytes`, so wiping `bytes` wipes them too. */
export function decodeWalletSecret(bytes: Uint8Array): WalletSecret {
  assert(bytes[0] === LAYOUT && bytes[1] !== undefined, 'a sealed wallet secret has another layout');
  const keyAt = HEAD_BYTES + bytes[1];
  // INVARIANT: no other secret of a key store, such as the 32-byte key that decrypts an import, can be read as a
  // wallet's secret.
  assert(bytes.length === keyAt + KEY_BYTES, 'a sealed wallet secret has another length');
  const privateKey = bytes.subarray(keyAt);
  return bytes[1] === 0 ? { privateKey } : { privateKey, entropy: bytes.subarray(HEAD_BYTES, keyAt) };
}

/** The part of a wallet's key that is not secret. */
export interface WalletKeyFacts {
  readonly address: string;
  /** Null for chains on which the API shows no public key. */
  readonly publicKey: string | null;
  readonly entropyType: 'hd' | 'private-key';
  readonly derivationPath: string | null;
  readonly walletIndex: number | null;
}

/** A wallet's key before it is sealed. */
export interface WalletKeyMaterial extends WalletKeyFacts {
  /** The output of `encodeWalletSecret`. The receiver must wipe it. */
  readonly secretBytes: Uint8Array;
}

/** The number of entropy bytes for a phrase of 12 words. */
export const PHRASE_ENTROPY_BYTES = 16;
const PRIVATE_KEY_BYTES = 32;

/** Returns the number of random bytes for a new key of the chain type. */
export function keyBytesOf(chainType: ChainType): number {
  return isFromPhrase(chainType) ? PHRASE_ENTROPY_BYTES : PRIVATE_KEY_BYTES;
}

export function isFromPhrase(chainType: ChainType): boolean {
  return chains[chainType].fromPhrase;
}

/**
 * Creates a key. For chains with exportable phrases, it is derived from 128 bits of BIP-39 entropy at the chain's
 * default path, so that the phrase restores the address. Other chains use 256 random bits as the key.
 *
 * @param random of the length that `keyBytesOf` returns; it is wiped.
 */
export async function newWalletKey(chainType: ChainType, random: Uint8Array): Promise<WalletKeyMaterial> {
  if (isFromPhrase(chainType)) return walletKeyFromEntropy(chainType, random);
  try {
    return await walletKeyFromPrivateKey(chainType, await generatePrivateKey(chainType, random));
  } finally {
    random.fill(0);
  }
}

/**
 * Reads the key in an import: the UTF-8 bytes of a phrase, or a private key in one of the chain's forms. Wipes the
 * content.
 *
 * @throws InvalidImportedKeyError, whose message never contains the key.
 */
export async function importedWalletKey(
  chainType: ChainType,
  content: Uint8Array,
  { form, index }: { readonly form: 'phrase' | 'private-key'; readonly index?: number | undefined },
): Promise<WalletKeyMaterial> {
  try {
    if (form === 'phrase') {
      return await walletKeyFromEntropy(chainType, mnemonicToEntropy(bytesToUtf8(content) ?? ''), index);
    }
    return await walletKeyFromPrivateKey(chainType, await privateKeyFromImport(chainType, content));
  } catch {
    const what = form === 'phrase' ? 'a BIP-39 phrase' : `a private key of ${chainType}`;
    throw new InvalidImportedKeyError(`the decrypted content is not ${what}`);
  } finally {
    content.fill(0);
  }
}

/**
 * Returns the phrase or the private key as bytes to export, which the caller must wipe. Returns undefined if a phrase
 * is requested and the key has none.
 *
 * NOTE: the words pass through a JavaScript string, which cannot be wiped.
 */
export function exportedWalletKey(
  chainType: ChainType,
  { privateKey, entropy }: WalletSecret,
  form: 'phrase' | 'private-key',
): Uint8Array | undefined {
  if (form === 'private-key') return privateKeyForExport(chainType, privateKey);
  return entropy && new TextEncoder().encode(entropyToMnemonic(entropy));
}

/** Derives the key at the chain's default path from a phrase's entropy (16 to 32 bytes). Wipes the entropy. */
async function walletKeyFromEntropy(
  chainType: ChainType,
  entropy: Uint8Array,
  walletIndex = 0,
): Promise<WalletKeyMaterial> {
  const seed = await entropyToSeed(entropy);
  try {
    return await walletKeyFromSeed(chainType, { entropy, seed }, walletIndex);
  } finally {
    for (const bytes of [entropy, seed]) bytes.fill(0);
  }
}

/** Derives the key at the chain's default path from a phrase's seed. The caller must wipe the entropy and the seed. */
export async function walletKeyFromSeed(
  chainType: ChainType,
  { entropy, seed }: { readonly entropy: Uint8Array; readonly seed: Uint8Array },
  walletIndex = 0,
): Promise<WalletKeyMaterial> {
  const chain: Chain = chains[chainType];
  const derivationPath = chain.derivationPath(walletIndex);
  const privateKey = await deriveAtPath(chain.curve, seed, derivationPath);
  try {
    return {
      ...(await shownKeys(chainType, privateKey)),
      secretBytes: encodeWalletSecret({ privateKey, entropy }),
      entropyType: 'hd',
      derivationPath,
      walletIndex,
    };
  } finally {
    privateKey.fill(0);
  }
}

/** Creates the key material of a private key without a phrase. Wipes its input. */
async function walletKeyFromPrivateKey(
  chainType: ChainType,
  privateKey: Uint8Array,
): Promise<WalletKeyMaterial> {
  try {
    return {
      ...(await shownKeys(chainType, privateKey)),
      secretBytes: encodeWalletSecret({ privateKey }),
      entropyType: 'private-key',
      derivationPath: null,
      walletIndex: null,
    };
  } finally {
    privateKey.fill(0);
  }
}

async function shownKeys(chainType: ChainType, privateKey: Uint8Array) {
  const { address, publicKey } = await deriveWallet(chainType, privateKey);
  return { address, publicKey: chains[chainType].showsPublicKey ? publicKey : null };
}
