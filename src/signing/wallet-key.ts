import { entropyToMnemonic, entropyToSeed, mnemonicToEntropy } from '../crypto/bip39.ts';
import { bytesToUtf8 } from '../crypto/encoding.ts';
import {
  type Chain,
  type ChainType,
  chains,
  deriveAtPath,
  deriveWallet,
  generatePrivateKey,
} from './chains.ts';
import { privateKeyForExport, privateKeyFromImport } from './private-key-forms.ts';
import { InvalidImportedKeyError } from './signing-errors.ts';
import { encodeWalletSecret, type WalletSecret } from './wallet-secret.ts';

/** What is public about a wallet's key. */
export interface WalletKeyFacts {
  readonly address: string;
  /** Null for chains whose wallets do not show a public key. */
  readonly publicKey: string | null;
  readonly entropyType: 'hd' | 'private-key';
  readonly derivationPath: string | null;
  readonly walletIndex: number | null;
}

/** A wallet's key before it is sealed. */
export interface WalletKeyMaterial extends WalletKeyFacts {
  /** Encoded by `encodeWalletSecret`; the receiver must wipe it. */
  readonly secretBytes: Uint8Array;
}

/** 12 words. */
export const PHRASE_ENTROPY_BYTES = 16;
const PRIVATE_KEY_BYTES = 32;

/** The random bytes that a new key of the chain type is made from. */
export function keyBytesOf(chainType: ChainType): number {
  return isFromPhrase(chainType) ? PHRASE_ENTROPY_BYTES : PRIVATE_KEY_BYTES;
}

/** Whether new keys of the chain type have a phrase. */
export function isFromPhrase(chainType: ChainType): boolean {
  return chains[chainType].fromPhrase;
}

/**
 * A new key. Chains with exportable phrases take 128 bits of BIP-39 entropy and use the key at the chain's default path,
 * so that the phrase gives the address again; the others take 256 random bits.
 *
 * Shape: `random` as long as `keyBytesOf` says; it is wiped.
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
 * The key that an import contains: the UTF-8 bytes of a phrase, or a private key in one of the chain's forms. Wipes the
 * content. Throws InvalidImportedKeyError, whose message never contains the key.
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
 * The key as an export contains it; undefined for the phrase of a key without one. The caller wipes it.
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

/** The key of a phrase's entropy (16 to 32 bytes) at the chain's default path; wipes the entropy. */
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

/** The key of a phrase whose seed is known, at the chain's default path. The caller wipes both. */
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

/** Key material from a bare private key, without a phrase; wipes its input. */
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
