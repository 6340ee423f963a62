import { loadOnce } from '../load-once.ts';
import type { AuthorizationParams } from './ethereum/authorization.ts';
import type { VerifyingAccount } from './ethereum/light-account.ts';
import type { PersonalSignParams } from './ethereum/personal-sign.ts';
import type { EthereumTransaction } from './ethereum/sign-transaction.ts';
import type { SignedAuthorization } from './ethereum/transaction.ts';
import type { TypedData } from './ethereum/typed-data.ts';
import type { UserOperationParams } from './ethereum/user-operation.ts';
import { parseMessage } from './fields.ts';
import type { SolanaTransactionParams } from './solana/signer.ts';
import type { TronRawData } from './tron/raw-data.ts';
import type { XrplSignedTransaction, XrplTransactionParams } from './xrpl/sign-transaction.ts';

/**
 * The rpc methods that need no network. `signOffline(method, secret, params)` returns the `data` of the response;
 * `isOfflineMethod(method)` checks whether a method is one of them. Each chain's code is imported on first use.
 */

interface HexSignature {
  readonly signature: string;
  readonly encoding: 'hex';
}

/** Params and response data of each method, in the contract's names. */
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
  /** Pass the nonce: it defaults to 0 because no node is queried. */
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
  personalSign: loadOnce(() => import('./ethereum/personal-sign.ts')),
  typedData: loadOnce(() => import('./ethereum/typed-data.ts')),
  userOperation: loadOnce(() => import('./ethereum/user-operation.ts')),
  ethereumTransaction: loadOnce(() => import('./ethereum/sign-transaction.ts')),
  authorization: loadOnce(() => import('./ethereum/authorization.ts')),
  solanaMessage: loadOnce(() => import('./solana/signer.ts')),
  solanaTransaction: loadOnce(() => import('./solana/signer.ts')),
  tronTransaction: loadOnce(() => import('./tron/signer.ts')),
  lightAccount: loadOnce(() => import('./ethereum/light-account.ts')),
  xrplTransaction: loadOnce(() => import('./xrpl/sign-transaction.ts')),
  aptosTransaction: loadOnce(() => import('./aptos/signer.ts')),
  nearTransaction: loadOnce(() => import('./near/signer.ts')),
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
    const { hashTypedData, signTypedData } = await modules.typedData();
    if (params.smart_account !== undefined) {
      const digest = hashTypedData(params.typed_data, '/typed_data');
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
 * Signs with one of the methods. The caller checks that the wallet's chain supports it (`requireRpcMethod`).
 * `params` are the request's params; the `field` of an error points into them.
 * Throws SigningInputError (InvalidSolanaTransactionError where a Solana transaction does not decode).
 */
export function signOffline<Method extends OfflineMethod>(
  method: Method,
  secret: Uint8Array,
  params: OfflineMethods[Method]['params'],
): Promise<OfflineMethods[Method]['data']> {
  return signers[method](secret, params);
}
