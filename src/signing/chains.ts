/**
 * The one table of chains. Everything is asynchronous because a chain's room and its library are imported
 * at first use. Exports: `chains`, `isChainType`, `deriveWallet`, `derivePrivateKey`, `generatePrivateKey`,
 * `rawSign`, `assertSecret`, `rpcMethodsOf`, `requireRpcMethod`.
 */

import { entropyToSeed, mnemonicToSeed } from '../crypto/bip39.ts';
import { bytesTo0xHex } from '../crypto/encoding.ts';
import { deriveEd25519, deriveSecp256k1 } from '../crypto/hd-path.ts';
import { ecBackend } from '../crypto/secp256k1.ts';
import type { AddressOptions, ChainRoom, CurveType, WalletKeys } from './chain-room.ts';
import { loadOnce } from './load-once.ts';
import { decodeRawSign, type RawSignParams } from './raw-sign.ts';
import { InvalidPrivateKeyError, UnsupportedMethodError } from './signing-errors.ts';

export type { AddressOptions, CurveType, RawSignParams, WalletKeys };

/** One line of the table. */
export interface Chain {
  readonly curve: CurveType;
  /** Default derivation path of a wallet index; index 0 is the first wallet. */
  readonly derivationPath: (index: number) => string;
  /** New wallets are made from a BIP-39 phrase, so that an exported phrase gives the address again. */
  readonly fromPhrase: boolean;
  /** Whether a wallet shows `public_key`: the extended chains do. */
  readonly showsPublicKey: boolean;
  /** The rpc methods that fit, the two exports among them. */
  readonly rpcMethods: readonly string[];
  /** Whether `raw_sign` fits. */
  readonly rawSign: boolean;
  readonly load: () => Promise<ChainRoom>;
}

const loadStarknet = loadOnce(() => import('./starknet.ts'));

const EXPORTS = ['exportPrivateKey', 'exportSeedPhrase'];
const extended = { fromPhrase: false, showsPublicKey: true, rpcMethods: EXPORTS, rawSign: true } as const;

const aptosLike = {
  ...extended,
  curve: 'ed25519',
  derivationPath: (index: number) => `m/44'/637'/${index}'/0'/0'`,
  rpcMethods: ['aptos_signTransaction', ...EXPORTS],
  load: loadOnce(async () => (await import('./aptos/room.ts')).aptosRoom),
} as const;

export const chains = {
  ethereum: {
    curve: 'secp256k1',
    derivationPath: (index) => `m/44'/60'/0'/0/${index}`,
    fromPhrase: true,
    showsPublicKey: false,
    rpcMethods: [
      'personal_sign',
      'secp256k1_sign',
      'eth_signTransaction',
      'eth_sendTransaction',
      'eth_signTypedData_v4',
      'eth_sign7702Authorization',
      'eth_signUserOperation',
      'wallet_sendCalls',
      ...EXPORTS,
    ],
    rawSign: true,
    load: loadOnce(async () => (await import('./ethereum/room.ts')).ethereumRoom),
  },
  solana: {
    curve: 'ed25519',
    derivationPath: (index) => `m/44'/501'/${index}'/0'`,
    fromPhrase: true,
    showsPublicKey: false,
    rpcMethods: ['signMessage', 'signTransaction', 'signAndSendTransaction', ...EXPORTS],
    rawSign: true,
    load: loadOnce(async () => (await import('./solana/room.ts')).solanaRoom),
  },
  cosmos: {
    ...extended,
    curve: 'secp256k1',
    derivationPath: (index) => `m/44'/118'/0'/0/${index}`,
    load: loadOnce(async () => (await import('./cosmos.ts')).cosmosRoom),
  },
  stellar: {
    ...extended,
    curve: 'ed25519',
    derivationPath: (index) => `m/44'/148'/${index}'`,
    load: loadOnce(async () => (await import('./stellar.ts')).stellarRoom),
  },
  sui: {
    ...extended,
    curve: 'ed25519',
    derivationPath: (index) => `m/44'/784'/${index}'/0'/0'`,
    load: loadOnce(async () => (await import('./sui/room.ts')).suiRoom),
  },
  aptos: aptosLike,
  movement: aptosLike,
  tron: {
    ...extended,
    curve: 'secp256k1',
    derivationPath: (index) => `m/44'/195'/0'/0/${index}`,
    rpcMethods: ['tron_signTransaction', 'tron_sendTransaction', ...EXPORTS],
    load: loadOnce(async () => (await import('./tron/room.ts')).tronRoom),
  },
  'bitcoin-segwit': {
    ...extended,
    curve: 'secp256k1',
    derivationPath: (index) => `m/84'/0'/0'/0/${index}`,
    load: loadOnce(async () => (await import('./bitcoin.ts')).bitcoinSegwitRoom),
  },
  'bitcoin-taproot': {
    ...extended,
    curve: 'secp256k1',
    derivationPath: (index) => `m/86'/0'/0'/0/${index}`,
    load: loadOnce(async () => (await import('./bitcoin.ts')).bitcoinTaprootRoom),
  },
  pearl: {
    ...extended,
    curve: 'secp256k1',
    derivationPath: (index) => `m/86'/808276'/0'/0/${index}`,
    load: loadOnce(async () => (await import('./bitcoin.ts')).pearlRoom),
  },
  near: {
    ...extended,
    curve: 'ed25519',
    derivationPath: (index) => `m/44'/397'/${index}'`,
    rpcMethods: ['near_signTransaction', ...EXPORTS],
    load: loadOnce(async () => (await import('./near/room.ts')).nearRoom),
  },
  ton: {
    ...extended,
    curve: 'ed25519',
    derivationPath: (index) => `m/44'/607'/${index}'`,
    load: loadOnce(async () => (await import('./ton.ts')).tonRoom),
  },
  starknet: {
    ...extended,
    curve: 'starknet',
    derivationPath: (index) => `m/44'/9004'/0'/0/${index}`,
    load: async () => (await loadStarknet()).starknetRoom,
  },
  xrpl: {
    ...extended,
    curve: 'secp256k1',
    derivationPath: (index) => `m/44'/144'/0'/0/${index}`,
    fromPhrase: true,
    rpcMethods: ['xrpl_signTransaction', ...EXPORTS],
    load: loadOnce(async () => (await import('./xrpl/room.ts')).xrplRoom),
  },
  spark: {
    ...extended,
    curve: 'secp256k1',
    // CHOICE: account numbers begin at 1, the public SDK's default on mainnet.
    derivationPath: (index) => `m/8797555'/${index + 1}'/0'`,
    rpcMethods: [
      'transfer',
      'getBalance',
      'transferTokens',
      'getStaticDepositAddress',
      'getClaimStaticDepositQuote',
      'claimStaticDeposit',
      'createLightningInvoice',
      'payLightningInvoice',
      'signMessageWithIdentityKey',
      'withdraw',
      'getWithdrawalFeeQuote',
      ...EXPORTS,
    ],
    // CHOICE: spark keys sign through their own methods only, as the public types have it.
    rawSign: false,
    load: loadOnce(async () => (await import('./spark.ts')).sparkRoom),
  },
} as const satisfies Record<string, Chain>;

export type ChainType = keyof typeof chains;

export function isChainType(text: string): text is ChainType {
  return Object.hasOwn(chains, text);
}

/** Where a private key is derived from: a phrase, the entropy of a phrase (16 to 32 bytes), or a master seed. */
export type KeySource =
  | { readonly mnemonic: string }
  | { readonly entropy: Uint8Array }
  | { readonly seed: Uint8Array };

/**
 * The address and public key of a 32-byte secret. Throws InvalidPrivateKeyError when the bytes are no
 * secret of the chain's curve. Source: the chain's own room.
 */
export async function deriveWallet(
  chainType: ChainType,
  secret: Uint8Array,
  options: AddressOptions = {},
): Promise<WalletKeys> {
  await assertSecret(chainType, secret);
  const room = await chains[chainType].load();
  return room.walletKeys(secret, options);
}

/**
 * The 32-byte secret at the chain's default path, for the caller to wipe. secp256k1: BIP-32; ed25519: SLIP-10
 * (the seed of RFC 8032); starknet: BIP-32, then EIP-2645 grinding. `index`: 0 to 2^31 - 1.
 * The Solana strategy ENTROPY_TO_MNEMONIC_TO_SEED is `{ entropy }`, ENTROPY_TO_SEED is `{ seed: entropy }`.
 * Throws InvalidMnemonicError, InvalidHdPathError.
 */
export async function derivePrivateKey(
  chainType: ChainType,
  source: KeySource,
  index = 0,
): Promise<Uint8Array> {
  const seed = await seedOf(source);
  try {
    return await deriveAtPath(chains[chainType].curve, seed, chains[chainType].derivationPath(index));
  } finally {
    if (!('seed' in source)) seed.fill(0);
  }
}

async function seedOf(source: KeySource): Promise<Uint8Array> {
  if ('seed' in source) return source.seed;
  return 'mnemonic' in source ? mnemonicToSeed(source.mnemonic) : entropyToSeed(source.entropy);
}

/** The 32-byte secret at any path below a master seed. Throws InvalidHdPathError. */
export async function deriveAtPath(curve: CurveType, seed: Uint8Array, path: string): Promise<Uint8Array> {
  if (curve === 'ed25519') return deriveEd25519(seed, path);
  const secret = deriveSecp256k1(seed, path);
  if (curve === 'secp256k1') return secret;
  try {
    return (await loadStarknet()).grindStarkSecret(secret);
  } finally {
    secret.fill(0);
  }
}

/**
 * The secret of a wallet without a phrase, out of 32 random bytes: no HD mathematics.
 * Throws InvalidPrivateKeyError when the bytes are not below the curve's order (probability 2^-128): draw again.
 */
export async function generatePrivateKey(chainType: ChainType, random: Uint8Array): Promise<Uint8Array> {
  if (chains[chainType].curve === 'starknet') return (await loadStarknet()).grindStarkSecret(random);
  await assertSecret(chainType, random);
  return random.slice();
}

/** Throws InvalidPrivateKeyError unless the bytes are a secret of the chain's curve. */
export async function assertSecret(chainType: ChainType, secret: Uint8Array): Promise<void> {
  const { curve } = chains[chainType];
  if (!(await isSecret(curve, secret))) {
    throw new InvalidPrivateKeyError('', `expected a ${curve} private key of 32 bytes`);
  }
}

async function isSecret(curve: CurveType, secret: Uint8Array): Promise<boolean> {
  if (curve === 'secp256k1') return ecBackend.isValidSecret(secret);
  if (curve === 'ed25519') return secret.length === 32;
  return (await loadStarknet()).isStarkSecret(secret);
}

/** The names of the rpc methods that fit the chain. */
export function rpcMethodsOf(chainType: ChainType): readonly string[] {
  return chains[chainType].rpcMethods;
}

/** Throws UnsupportedMethodError, which names the methods that fit, unless the method fits the chain. */
export function requireRpcMethod(chainType: ChainType, method: string): void {
  const fitting = rpcMethodsOf(chainType);
  if (!fitting.includes(method)) throw new UnsupportedMethodError(method, chainType, fitting);
}

/**
 * `raw_sign`: the signature as 0x hex. secp256k1 chains sign a 32-byte digest to r || s (64 bytes; tron and
 * ethereum r || s || v, 65), taproot chains to BIP-340 with the tweaked key, ed25519 chains sign the bytes
 * themselves, starknet a felt below 2^251.
 * Throws InvalidFieldError, InvalidPayloadError, UnsupportedMethodError.
 */
export async function rawSign(
  chainType: ChainType,
  secret: Uint8Array,
  params: RawSignParams,
): Promise<`0x${string}`> {
  const chain: Chain = chains[chainType];
  if (!chain.rawSign) throw new UnsupportedMethodError('raw_sign', chainType, chain.rpcMethods);
  const { payload } = decodeRawSign(params, chain.curve);
  const room = await chain.load();
  return bytesTo0xHex(room.signPayload(secret, payload));
}
