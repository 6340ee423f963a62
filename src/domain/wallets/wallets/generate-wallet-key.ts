import { setImmediate } from 'node:timers/promises';
import { entropyToSeed } from '../../../crypto/bip39.ts';
import type { WalletChainType } from '../../../generated/schemas.ts';
import type { Entropy } from '../../../ports/entropy.ts';
import {
  type Chain,
  chains,
  deriveAtPath,
  deriveWallet,
  generatePrivateKey,
} from '../../../signing/chains.ts';
import { encodeWalletSecret } from './wallet-secret.ts';

/** 12 words. */
const PHRASE_ENTROPY_BYTES = 16;
const PRIVATE_KEY_BYTES = 32;

/** A wallet's key before it is sealed. */
export interface WalletKeyMaterial {
  /** Encoded by `encodeWalletSecret`; the receiver must wipe it. */
  readonly secretBytes: Uint8Array;
  readonly address: string;
  /** Null for chains whose wallets do not show a public key. */
  readonly publicKey: string | null;
  readonly entropyType: 'hd' | 'private-key';
  readonly derivationPath: string | null;
  readonly walletIndex: number | null;
}

/**
 * Draws a new key. Chains with exportable phrases get 128 bits of BIP-39 entropy and the key at the chain's
 * default path, so that the phrase gives the address again; the others 256 random bits.
 *
 * NOTE: the entropy is drawn before anything is awaited, so that concurrent requests draw in their order.
 */
export function generateWalletKey(chainType: WalletChainType, entropy: Entropy): Promise<WalletKeyMaterial> {
  return chains[chainType].fromPhrase
    ? walletKeyFromEntropy(chainType, entropy.bytes(PHRASE_ENTROPY_BYTES))
    : walletKeyFromRandom(chainType, entropy.bytes(PRIVATE_KEY_BYTES));
}

/** How many keys are derived, or wallets stored, before other requests run: each takes a millisecond or more. */
export const KEYS_AT_ONCE = 10;

/** Draws several keys, a few of them concurrently: deriving them runs on several threads. */
export async function generateWalletKeys(
  chainTypes: readonly WalletChainType[],
  entropy: Entropy,
): Promise<WalletKeyMaterial[]> {
  const keys: WalletKeyMaterial[] = [];
  for (let from = 0; from < chainTypes.length; from += KEYS_AT_ONCE) {
    const some = chainTypes.slice(from, from + KEYS_AT_ONCE);
    keys.push(...(await Promise.all(some.map((chainType) => generateWalletKey(chainType, entropy)))));
    await setImmediate();
  }
  return keys;
}

/** The key of a phrase's entropy (16 to 32 bytes) at the chain's default path; wipes the entropy. */
export async function walletKeyFromEntropy(
  chainType: WalletChainType,
  entropy: Uint8Array,
  walletIndex = 0,
): Promise<WalletKeyMaterial> {
  const chain: Chain = chains[chainType];
  const derivationPath = chain.derivationPath(walletIndex);
  const seed = await entropyToSeed(entropy);
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
    for (const bytes of [entropy, seed, privateKey]) bytes.fill(0);
  }
}

async function walletKeyFromRandom(
  chainType: WalletChainType,
  random: Uint8Array,
): Promise<WalletKeyMaterial> {
  try {
    return await walletKeyFromPrivateKey(chainType, await generatePrivateKey(chainType, random));
  } finally {
    random.fill(0);
  }
}

/** Key material from a bare private key, without a phrase; wipes its input. */
export async function walletKeyFromPrivateKey(
  chainType: WalletChainType,
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

async function shownKeys(chainType: WalletChainType, privateKey: Uint8Array) {
  const { address, publicKey } = await deriveWallet(chainType, privateKey);
  return { address, publicKey: chains[chainType].showsPublicKey ? publicKey : null };
}
