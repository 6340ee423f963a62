import { deriveEd25519, deriveSecp256k1 } from '../crypto/bip32.ts';
import { entropyToSeed, mnemonicToSeed } from '../crypto/bip39.ts';
import { ecBackend } from '../crypto/secp256k1.ts';
import { loadOnce } from '../load-once.ts';
import type { AddressOptions, ChainSigner, CurveType, WalletKeys } from './chain-signer.ts';
import { InvalidPrivateKeyError, UnsupportedMethodError } from './signing-errors.ts';

/**
 * The table of chain types, and the operations on keys of any chain type. Most of them are asynchronous, because a
 * chain's code and libraries are imported on first use.
 */

export type { AddressOptions, CurveType, WalletKeys };

/** How Custos handles one chain type. */
export interface Chain {
  readonly curve: CurveType;
  /** Returns the default derivation path of a wallet. Index 0 is the first wallet. */
  readonly derivationPath: (index: number) => string;
  /** Whether new wallets are derived from a BIP-39 phrase, so that an exported phrase restores the address. */
  readonly fromPhrase: boolean;
  /** Whether the API returns `public_key` for wallets of the chain. */
  readonly showsPublicKey: boolean;
  /** Supported RPC methods, including `exportPrivateKey` and `exportSeedPhrase`. */
  readonly rpcMethods: readonly string[];
  /** Whether the chain supports `raw_sign`. */
  readonly rawSign: boolean;
  readonly load: () => Promise<ChainSigner>;
}

const loadStarknet = loadOnce(() => import('./starknet.ts'));

const EXPORTS = ['exportPrivateKey', 'exportSeedPhrase'];
const extended = { fromPhrase: false, showsPublicKey: true, rpcMethods: EXPORTS, rawSign: true } as const;

const aptosLike = {
  ...extended,
  curve: 'ed25519',
  derivationPath: (index: number) => `m/44'/637'/${index}'/0'/0'`,
  rpcMethods: ['aptos_signTransaction', ...EXPORTS],
  load: loadOnce(async () => (await import('./aptos.ts')).aptosSigner),
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
    load: loadOnce(async () => (await import('./ethereum/signer.ts')).ethereumSigner),
  },
  solana: {
    curve: 'ed25519',
    derivationPath: (index) => `m/44'/501'/${index}'/0'`,
    fromPhrase: true,
    showsPublicKey: false,
    rpcMethods: ['signMessage', 'signTransaction', 'signAndSendTransaction', ...EXPORTS],
    rawSign: true,
    load: loadOnce(async () => (await import('./solana/signer.ts')).solanaSigner),
  },
  cosmos: {
    ...extended,
    curve: 'secp256k1',
    derivationPath: (index) => `m/44'/118'/0'/0/${index}`,
    load: loadOnce(async () => (await import('./cosmos.ts')).cosmosSigner),
  },
  stellar: {
    ...extended,
    curve: 'ed25519',
    derivationPath: (index) => `m/44'/148'/${index}'`,
    load: loadOnce(async () => (await import('./stellar.ts')).stellarSigner),
  },
  sui: {
    ...extended,
    curve: 'ed25519',
    derivationPath: (index) => `m/44'/784'/${index}'/0'/0'`,
    load: loadOnce(async () => (await import('./sui.ts')).suiSigner),
  },
  aptos: aptosLike,
  movement: aptosLike,
  tron: {
    ...extended,
    curve: 'secp256k1',
    derivationPath: (index) => `m/44'/195'/0'/0/${index}`,
    rpcMethods: ['tron_signTransaction', 'tron_sendTransaction', ...EXPORTS],
    load: loadOnce(async () => (await import('./tron/signer.ts')).tronSigner),
  },
  'bitcoin-segwit': {
    ...extended,
    curve: 'secp256k1',
    derivationPath: (index) => `m/84'/0'/0'/0/${index}`,
    load: loadOnce(async () => (await import('./bitcoin.ts')).bitcoinSegwitSigner),
  },
  'bitcoin-taproot': {
    ...extended,
    curve: 'secp256k1',
    derivationPath: (index) => `m/86'/0'/0'/0/${index}`,
    load: loadOnce(async () => (await import('./bitcoin.ts')).bitcoinTaprootSigner),
  },
  pearl: {
    ...extended,
    curve: 'secp256k1',
    derivationPath: (index) => `m/86'/808276'/0'/0/${index}`,
    load: loadOnce(async () => (await import('./bitcoin.ts')).pearlSigner),
  },
  near: {
    ...extended,
    curve: 'ed25519',
    derivationPath: (index) => `m/44'/397'/${index}'`,
    rpcMethods: ['near_signTransaction', ...EXPORTS],
    load: loadOnce(async () => (await import('./near.ts')).nearSigner),
  },
  ton: {
    ...extended,
    curve: 'ed25519',
    derivationPath: (index) => `m/44'/607'/${index}'`,
    load: loadOnce(async () => (await import('./ton.ts')).tonSigner),
  },
  starknet: {
    ...extended,
    curve: 'starknet',
    derivationPath: (index) => `m/44'/9004'/0'/0/${index}`,
    load: async () => (await loadStarknet()).starknetSigner,
  },
  xrpl: {
    ...extended,
    curve: 'secp256k1',
    derivationPath: (index) => `m/44'/144'/0'/0/${index}`,
    fromPhrase: true,
    rpcMethods: ['xrpl_signTransaction', ...EXPORTS],
    load: loadOnce(async () => (await import('./xrpl/signer.ts')).xrplSigner),
  },
  spark: {
    ...extended,
    curve: 'secp256k1',
    // CHOICE: account numbers start at 1, the default of the public SDK on mainnet.
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
    // CHOICE: no `raw_sign` for Spark, in line with the published client types.
    rawSign: false,
    load: loadOnce(async () => (await import('./spark.ts')).sparkSigner),
  },
} as const satisfies Record<string, Chain>;

export type ChainType = keyof typeof chains;

export function isChainType(text: string): text is ChainType {
  return Object.hasOwn(chains, text);
}

/** What a private key is derived from: a phrase, the entropy of a phrase (16 to 32 bytes), or a master seed. */
export type KeySource =
  | { readonly mnemonic: string }
  | { readonly entropy: Uint8Array }
  | { readonly seed: Uint8Array };

/**
 * Returns the address and public key of a 32-byte secret.
 *
 * @throws InvalidPrivateKeyError if the bytes are not a valid secret for the chain's curve.
 */
export async function deriveWallet(
  chainType: ChainType,
  secret: Uint8Array,
  options: AddressOptions = {},
): Promise<WalletKeys> {
  await assertSecret(chainType, secret);
  const signer = await chains[chainType].load();
  return signer.walletKeys(secret, options);
}

/**
 * Derives the 32-byte secret at the chain's default path. The caller must wipe it. It uses BIP-32 for secp256k1,
 * SLIP-10 for ed25519 (the seed of RFC 8032), and BIP-32 with EIP-2645 grinding for starknet. For the Solana strategy
 * ENTROPY_TO_MNEMONIC_TO_SEED pass `{ entropy }`, for ENTROPY_TO_SEED `{ seed: entropy }`.
 *
 * @param index 0 to 2^31 - 1.
 * @throws InvalidMnemonicError, InvalidHdPathError
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

/**
 * Derives the 32-byte secret at any path from a master seed.
 *
 * @throws InvalidHdPathError
 */
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
 * Turns 32 random bytes into the secret of a wallet without a phrase.
 *
 * @throws InvalidPrivateKeyError if the bytes are not below the curve's order (probability 2^-128). The caller then
 * retries with other bytes.
 */
export async function generatePrivateKey(chainType: ChainType, random: Uint8Array): Promise<Uint8Array> {
  if (chains[chainType].curve === 'starknet') return (await loadStarknet()).grindStarkSecret(random);
  await assertSecret(chainType, random);
  return random.slice();
}

/**
 * Requires that the bytes are a valid secret for the chain's curve.
 *
 * @throws InvalidPrivateKeyError
 */
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

export function rpcMethodsOf(chainType: ChainType): readonly string[] {
  return chains[chainType].rpcMethods;
}

/**
 * Requires that the chain type supports the RPC method.
 *
 * @throws UnsupportedMethodError, which lists the supported methods.
 */
export function requireRpcMethod(chainType: ChainType, method: string): void {
  const supported = rpcMethodsOf(chainType);
  if (!supported.includes(method)) throw new UnsupportedMethodError(method, chainType, supported);
}
