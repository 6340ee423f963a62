import { blake2b } from '@noble/hashes/blake2.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { base64ToBytes, bytesTo0xHex, prefixedHexToBytes } from '../crypto/encoding.ts';
import { loadOnce } from '../load-once.ts';
import type { CurveType } from './chain-signer.ts';
import { type Chain, type ChainType, chains } from './chains.ts';
import type { EthereumTransaction } from './ethereum/any-transaction.ts';
import type { AuthorizationParams } from './ethereum/authorization.ts';
import type { PersonalSignParams } from './ethereum/signer.ts';
import type { VerifyingAccount } from './ethereum/smart-accounts.ts';
import type { SignedAuthorization } from './ethereum/transaction.ts';
import type { TypedData } from './ethereum/typed-data.ts';
import type { UserOperationParams } from './ethereum/user-operation.ts';
import { decodeField, parseMessage } from './fields.ts';
import { InvalidFieldError, UnsupportedMethodError } from './signing-errors.ts';
import type { SolanaTransactionParams } from './solana/signer.ts';
import type { SparkOperation } from './spark.ts';
import type { TronRawData } from './tron/raw-data.ts';
import type { XrplSignedTransaction, XrplTransactionParams } from './xrpl/signer.ts';

// Makes every signature of a wallet's key: the RPC methods that need no network, `raw_sign`, and Spark operations. The
// code of each chain is imported on first use.

interface HexSignature {
  readonly signature: string;
  readonly encoding: 'hex';
}

/** The params and the response data of each method, with the field names of the API. */
export interface OfflineMethods {
  personal_sign: { params: PersonalSignParams; data: HexSignature };
  secp256k1_sign: { params: { readonly hash: string }; data: HexSignature };
  eth_signTypedData_v4: {
    params: { readonly typed_data: TypedData; readonly smart_account?: VerifyingAccount | undefined };
    data: HexSignature;
  };
  eth_signUserOperation: { params: UserOperationParams; data: HexSignature };
  eth_signTransaction: {
    params: { readonly transaction: EthereumTransaction };
    data: { readonly signed_transaction: string; readonly encoding: 'rlp' };
  };
  /** The caller should pass the nonce. Without it the nonce is 0, because no node is asked. */
  eth_sign7702Authorization: {
    params: AuthorizationParams;
    data: { readonly authorization: SignedAuthorization };
  };
  signMessage: {
    params: { readonly message: string; readonly encoding: 'base64' };
    data: { readonly signature: string; readonly encoding: 'base64' };
  };
  signTransaction: {
    params: SolanaTransactionParams;
    data: { readonly signed_transaction: string; readonly encoding: 'base64' };
  };
  tron_signTransaction: {
    params: { readonly raw_data: TronRawData };
    data: { readonly signed_transaction: string; readonly encoding: 'hex' };
  };
  xrpl_signTransaction: {
    params: XrplTransactionParams;
    data: XrplSignedTransaction & { readonly encoding: 'hex' };
  };
  aptos_signTransaction: {
    params: { readonly transaction: string };
    data: { readonly signed_transaction: string; readonly encoding: 'hex' };
  };
  near_signTransaction: {
    params: { readonly transaction: string };
    data: { readonly signed_transaction: string; readonly encoding: 'base64' };
  };
  signMessageWithIdentityKey: {
    params: { readonly message: string; readonly compact?: boolean | undefined };
    data: { readonly signature: string };
  };
}

export type OfflineMethod = keyof OfflineMethods;

type Signers = {
  readonly [Method in OfflineMethod]: (
    secret: Uint8Array,
    params: OfflineMethods[Method]['params'],
  ) => Promise<OfflineMethods[Method]['data']>;
};

const modules = {
  personalSign: loadOnce(() => import('./ethereum/signer.ts')),
  typedData: loadOnce(() => import('./ethereum/typed-data.ts')),
  userOperation: loadOnce(() => import('./ethereum/user-operation.ts')),
  ethereumTransaction: loadOnce(() => import('./ethereum/any-transaction.ts')),
  authorization: loadOnce(() => import('./ethereum/authorization.ts')),
  solanaMessage: loadOnce(() => import('./solana/signer.ts')),
  solanaTransaction: loadOnce(() => import('./solana/signer.ts')),
  tronTransaction: loadOnce(() => import('./tron/signer.ts')),
  lightAccount: loadOnce(() => import('./ethereum/smart-accounts.ts')),
  xrplTransaction: loadOnce(() => import('./xrpl/signer.ts')),
  aptosTransaction: loadOnce(() => import('./aptos.ts')),
  nearTransaction: loadOnce(() => import('./near.ts')),
  spark: loadOnce(() => import('./spark.ts')),
};

const signers: Signers = {
  async personal_sign(secret, params) {
    const { hashPersonalMessage, signPersonalMessage } = await modules.personalSign();
    if (params.smart_account !== undefined) {
      const digest = hashPersonalMessage(parseMessage(params.message, params.encoding, '/message'));
      const { signForLightAccount } = await modules.lightAccount();
      return { signature: signForLightAccount(secret, digest, params.smart_account), encoding: 'hex' };
    }
    return { signature: signPersonalMessage(secret, params), encoding: 'hex' };
  },
  async secp256k1_sign(secret, params) {
    const { signSecp256k1Digest } = await modules.personalSign();
    return { signature: signSecp256k1Digest(secret, params), encoding: 'hex' };
  },
  async eth_signTypedData_v4(secret, params) {
    const { digestOfRequest, signTypedData } = await modules.typedData();
    if (params.smart_account !== undefined) {
      const digest = await digestOfRequest(params);
      const { signForLightAccount } = await modules.lightAccount();
      return { signature: signForLightAccount(secret, digest, params.smart_account), encoding: 'hex' };
    }
    return { signature: await signTypedData(secret, params), encoding: 'hex' };
  },
  async eth_signUserOperation(secret, params) {
    const { signUserOperation } = await modules.userOperation();
    return { signature: signUserOperation(secret, params), encoding: 'hex' };
  },
  async eth_signTransaction(secret, params) {
    const { signEthereumTransaction } = await modules.ethereumTransaction();
    return { signed_transaction: await signEthereumTransaction(secret, params), encoding: 'rlp' };
  },
  async eth_sign7702Authorization(secret, params) {
    const { signAuthorization } = await modules.authorization();
    return { authorization: signAuthorization(secret, params) };
  },
  async signMessage(secret, params) {
    const { signSolanaMessage } = await modules.solanaMessage();
    return { signature: signSolanaMessage(secret, params), encoding: 'base64' };
  },
  async signTransaction(secret, params) {
    const { signSolanaTransaction } = await modules.solanaTransaction();
    return { signed_transaction: signSolanaTransaction(secret, params), encoding: 'base64' };
  },
  async tron_signTransaction(secret, params) {
    const { signTronTransaction } = await modules.tronTransaction();
    return { signed_transaction: signTronTransaction(secret, params), encoding: 'hex' };
  },
  async xrpl_signTransaction(secret, params) {
    const { signXrplTransaction } = await modules.xrplTransaction();
    return { ...signXrplTransaction(secret, params), encoding: 'hex' };
  },
  async aptos_signTransaction(secret, params) {
    const { signAptosTransaction } = await modules.aptosTransaction();
    return { signed_transaction: signAptosTransaction(secret, params), encoding: 'hex' };
  },
  async near_signTransaction(secret, params) {
    const { signNearTransaction } = await modules.nearTransaction();
    return { signed_transaction: signNearTransaction(secret, params), encoding: 'base64' };
  },
  async signMessageWithIdentityKey(secret, params) {
    const { signWithIdentityKey } = await modules.spark();
    return { signature: signWithIdentityKey(secret, params) };
  },
};

export function isOfflineMethod(method: string): method is OfflineMethod {
  return Object.hasOwn(signers, method);
}

/**
 * Signs with one of the methods. The caller must have checked that the wallet's chain supports it
 * (`requireRpcMethod`).
 * @param params the request's params; the `field` of an error points into them.
 * @throws SigningInputError, or InvalidSolanaTransactionError for a Solana transaction that cannot be decoded.
 */
export function signOffline<Method extends OfflineMethod>(
  method: Method,
  secret: Uint8Array,
  params: OfflineMethods[Method]['params'],
): Promise<OfflineMethods[Method]['data']> {
  return signers[method](secret, params);
}

/** The params of `raw_sign`: a hash or message to sign directly, or bytes to hash first. */
export type RawSignParams =
  | { readonly hash: string }
  | {
      readonly bytes: string;
      /** `hex` accepts an optional 0x. */
      readonly encoding: 'utf-8' | 'hex' | 'base64';
      readonly hash_function: 'keccak256' | 'sha256' | 'blake2b256';
    };

const HASH_FUNCTIONS = {
  keccak256: (bytes: Uint8Array) => keccak_256(bytes),
  sha256: (bytes: Uint8Array) => sha256(bytes),
  blake2b256: (bytes: Uint8Array) => blake2b(bytes, { dkLen: 32 }),
} as const;

/**
 * Decodes the params of `raw_sign`. `message` contains the caller's bytes before hashing, which policies decode. It
 * is undefined if only a hash was given. `payload` contains the bytes to sign. Starknet felts may have an odd number
 * of digits.
 *
 * @throws InvalidFieldError
 */
export function decodeRawSign(
  params: RawSignParams,
  curve?: CurveType,
): {
  message: Uint8Array | undefined;
  payload: Uint8Array;
} {
  if ('hash' in params) {
    const isOddFelt = curve === 'starknet' && params.hash.length % 2 === 1;
    const hash = isOddFelt ? params.hash.replace(/^0x/u, '0x0') : params.hash;
    return { message: undefined, payload: decodeField('/hash', () => prefixedHexToBytes(hash)) };
  }
  const { bytes, encoding } = params;
  const message =
    encoding === 'base64'
      ? decodeField('/bytes', () => base64ToBytes(bytes))
      : parseMessage(bytes, encoding, '/bytes');
  return { message, payload: HASH_FUNCTIONS[params.hash_function](message) };
}

/**
 * Executes `raw_sign`: returns the signature as 0x hex.
 * - secp256k1 chains sign a 32-byte digest and return r || s (64 bytes); tron and ethereum return r || s || v (65
 * bytes).
 * - Taproot chains return a BIP-340 signature under the tweaked key.
 * - ed25519 chains sign the payload itself, not a digest.
 * - starknet signs a felt below 2^251.
 *
 * @throws InvalidFieldError, InvalidPayloadError, UnsupportedMethodError
 */
export async function rawSign(
  chainType: ChainType,
  secret: Uint8Array,
  params: RawSignParams,
): Promise<`0x${string}`> {
  const chain: Chain = chains[chainType];
  if (!chain.rawSign) throw new UnsupportedMethodError('raw_sign', chainType, chain.rpcMethods);
  const { payload } = decodeRawSign(params, chain.curve);
  const signer = await chain.load();
  return bytesTo0xHex(signer.signPayload(secret, payload));
}

/**
 * The params and data of everything that a wallet's key signs: the RPC methods that need no network, `raw_sign` and
 * Spark operations.
 */
export interface SigningMethods extends OfflineMethods {
  raw_sign: { params: RawSignParams; data: `0x${string}` };
  /** r || s, hex. */
  spark_operation: { params: SparkOperation; data: string };
}

const loadSpark = loadOnce(() => import('./spark.ts'));

export type SigningMethod = keyof SigningMethods;

/** What to sign. The params are JSON, as in the API, so that they can be sent to another process. */
export interface SigningTask<Method extends SigningMethod = SigningMethod> {
  readonly method: Method;
  readonly params: SigningMethods[Method]['params'];
}

/**
 * Signs with a wallet's private key. The caller must have checked that the wallet's chain supports the method.
 *
 * @throws SigningInputError, whose field points into the params.
 */
export async function signWithKey<Method extends SigningMethod>(
  chainType: ChainType,
  privateKey: Uint8Array,
  { method, params }: SigningTask<Method>,
): Promise<SigningMethods[Method]['data']> {
  if (method === 'raw_sign') return rawSign(chainType, privateKey, params as RawSignParams);
  if (method === 'spark_operation') {
    return (await loadSpark()).signSparkOperation(privateKey, params as SparkOperation);
  }
  // INVARIANT: only the table's own methods run. An inherited method could return the key.
  if (!isOfflineMethod(method)) throw new InvalidFieldError('/method', 'expected a method that signs');
  return signOffline(method, privateKey, params as never);
}
