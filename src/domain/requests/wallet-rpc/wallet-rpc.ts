import assert from 'node:assert/strict';
import {
  callingAccount,
  decodeRpcAction,
  transactionUnits,
  unfoldBatches,
  withoutSuffix,
} from '../../../engine/actions/decode-action.ts';
import { decodeRawSignAction, decodeTronUnits } from '../../../engine/actions/decode-raw-bytes.ts';
import { decodeSolanaUnits } from '../../../engine/actions/decode-solana-units.ts';
import type { ActionUnit, PolicyAction } from '../../../engine/policy/action.ts';
import { type ChainType, requireRpcMethod } from '../../../engine/signing/chains.ts';
import {
  decodeEthereumTransaction,
  type EthereumTransaction,
  prepareEthereumTransaction,
} from '../../../engine/signing/ethereum/any-transaction.ts';
import { decodeBatch, encodeBatch } from '../../../engine/signing/ethereum/batch-executor.ts';
import { wrapForDeployment } from '../../../engine/signing/ethereum/smart-accounts.ts';
import {
  isOfflineMethod,
  type OfflineMethod,
  type RawSignParams,
} from '../../../engine/signing/sign-with-key.ts';
import { encodeTronRawData, type TronRawData } from '../../../engine/signing/tron/raw-data.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type {
  RawSignRequest,
  RawSignResponse,
  UnsignedEthereumTransaction,
  WalletRpcRequest,
  WalletRpcResponse,
} from '../../../generated/schemas.ts';
import { type OperationContext, type Planned, unwrapPlan } from '../../../ports/operation-context.ts';
import { asSigningRefusal } from '../../base/actions/action-refusals.ts';
import { sendBuilt } from '../../money/sending/broadcast.ts';
import { readCall } from '../../money/sending/plan-batch.ts';
import { withSuffix } from '../../money/sending/plan-ethereum.ts';
import { suffixed } from '../../money/sending/plan-user-operation.ts';
import type { PlannedSend, RpcRequest } from '../../money/sending/rpc-sender.ts';
import { sparkSenders } from '../../money/spark/plan-spark.ts';
import { isSparkQuery } from '../../money/spark/spark.ts';
import { authorizeUse, signWithWalletKey } from '../../wallets/wallet-uses/use-wallet.ts';
import { findWalletWithKey } from '../../wallets/wallets/find-wallet.ts';
import type { FoundWallet, WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import { exportWallet } from './export-wallet.ts';
import {
  fillAuthorizationNonce,
  isSendingRequest,
  type PreparedRpc,
  type RpcPlan,
  type SendingMethod,
} from './plan-rpc.ts';

/**
 * Builds a planned transaction. The result's `perform` signs it and schedules its broadcast for after the commit.
 *
 * @throws SigningInputError; from `perform` what `sendBuilt` throws.
 */
async function prepareSend(
  context: OperationContext,
  wallet: WalletRow,
  send: PlannedSend,
): Promise<PreparedRpc> {
  const { transaction, options, answer } = await send.build(context);
  return {
    action: transaction.action,
    async perform({ authorization, recordOrDeny }) {
      // Record the use before the broadcast is scheduled, so that a refusal after the commit does not hide it.
      await recordOrDeny();
      return answer(await sendBuilt(context, wallet, transaction, { ...options, authorization }));
    },
  };
}

type SignaturePlan = Extract<RpcPlan, { kind: 'signature' }>;
type SignatureRequest = Extract<WalletRpcRequest, { method: OfflineMethod; params: object }>;

interface RpcInput {
  readonly walletId: string;
  readonly request: WalletRpcRequest;
  /** The result of `planRpc`. */
  readonly planned: Planned<RpcPlan>;
}

/**
 * Runs one RPC method with a wallet's key: it signs, sends a transaction, exports the key or reads from a network. If
 * the wallet has an owner, the owner or an additional signer must have signed the request, and every applicable policy
 * must allow it. The request's `address`, `chain_type` and `wallet_id` are informational and have no effect.
 *
 * @throws ApiError not_found; invalid_data for a method of another chain type or params that cannot be signed;
 * invalid_solana_transaction; not_supported for a custodial wallet, a method that is not implemented and a chain that
 * is not configured; policy_violation; what `requireAuthorization` throws; for methods that send, what the planner and
 * `sendBuilt` throw.
 */
export async function runWalletRpc(
  context: OperationContext,
  { walletId, request, planned }: RpcInput,
): Promise<WalletRpcResponse> {
  const wallet = await findWalletWithKey(context, walletId);
  if (wallet.custody_provider !== null)
    throw new ApiError('not_supported', 'a custodial wallet does not support rpc');
  try {
    requireRpcMethod(wallet.chain_type as ChainType, request.method);
    return (await executeMethod(context, wallet, { request, planned })) as WalletRpcResponse;
  } catch (error) {
    throw asSigningRefusal(error);
  }
}

/** Authorizes the request, executes its method, and returns the response. */
async function executeMethod(
  context: OperationContext,
  wallet: FoundWallet,
  { request, planned }: Omit<RpcInput, 'walletId'>,
): Promise<{ method: string; data: unknown }> {
  const { method } = request;
  if (method === 'exportPrivateKey' || method === 'exportSeedPhrase') {
    const params = { ...request.params, export_seed_phrase: method === 'exportSeedPhrase' };
    return { method, data: await exportWallet(context, wallet.id, params, '/params') };
  }
  if (!isSendingRequest(request) && !isSparkQuery(request) && !isSignatureRequest(request)) {
    // CHOICE: the status is 400, not 501, because clients would retry a 501.
    throw new ApiError('not_supported', `/method: \`${method}\` is not implemented yet`);
  }
  const use = await authorizeUse(context, wallet, {
    operation: 'walletRpc',
    request,
    prepare: () => prepareRpc(context, wallet, { request, plan: unwrapPlan(planned) }),
    allowsSigners: true,
  });
  return { method, data: await use.prepared.perform(use) };
}

/** Returns the action of the request for the policies, and `perform`, which executes it once they have allowed it. */
function prepareRpc(
  context: OperationContext,
  wallet: FoundWallet,
  { request, plan }: { readonly request: WalletRpcRequest; readonly plan: RpcPlan },
): Promise<PreparedRpc> {
  switch (plan.kind) {
    case 'send':
      return prepareSend(context, wallet, plan.send);
    case 'network-response':
      return prepareReading(request, plan.response);
    case 'signature':
      assert(isSignatureRequest(request), 'methods that only sign need nothing from outside');
      return prepareSignature(context, wallet, { request, ...plan });
  }
}

/**
 * Prepares a request that only reads from a network. The result's `perform` returns the network's response, which the
 * plan has read.
 *
 * CHOICE: nothing is signed, but owner authorization and policies apply as for a signature, because only callers who
 * may use the wallet may call its RPC.
 */
async function prepareReading(request: WalletRpcRequest, answer: object): Promise<PreparedRpc> {
  return {
    action: await decodeRpcAction(request),
    async perform({ recordOrDeny }) {
      await recordOrDeny();
      return answer;
    },
  };
}

/** Prepares a request that only signs. The result's `perform` signs and returns the method's data. */
async function prepareSignature(
  context: OperationContext,
  wallet: FoundWallet,
  {
    request,
    pendingCount,
    smartAccount,
  }: { request: SignatureRequest } & Pick<SignaturePlan, 'pendingCount' | 'smartAccount'>,
): Promise<PreparedRpc> {
  const { method } = request;
  const filled =
    method === 'eth_sign7702Authorization'
      ? await fillAuthorizationNonce(context, wallet, { params: request.params, pendingCount })
      : request.params;
  const params = smartAccount === undefined ? filled : { ...filled, smart_account: smartAccount.verifying };
  const action = await decodeRpcAction(request);
  return {
    action: unfoldBatches(action, callingAccount(request, wallet.address)),
    onlySigns: true,
    async perform({ authorization, recordOrDeny }) {
      // The params are valid by the API document's schema of the method.
      const task = { method, params } as never;
      const data = await signWithWalletKey<OfflineMethod>(context, wallet, authorization, task);
      await recordOrDeny();
      if (smartAccount === undefined || smartAccount.isDeployed) return data;
      const { signature } = data as { readonly signature: string };
      return { ...data, signature: wrapForDeployment(smartAccount.factory, wallet.address, signature) };
    },
  };
}

function isSignatureRequest(request: WalletRpcRequest): request is SignatureRequest {
  return isOfflineMethod(request.method) && 'params' in request;
}

type Readers = {
  readonly [Method in Exclude<SendingMethod, keyof typeof sparkSenders>]: (
    request: RpcRequest<Method>,
  ) => Promise<readonly ActionUnit[]>;
};

/**
 * Decodes the action of a send request without its chain. Policies ignore the fields that the chain fills in (nonce,
 * gas, fees, blockhash, reference block), so the decision is the same as on execution.
 *
 * @throws the SigningInputError or ApiError for a request that could not be sent.
 */
export async function readSentAction(request: RpcRequest<SendingMethod>): Promise<PolicyAction> {
  // Spark movements are not decoded. No rule can name their methods, so only rules with the method `*` apply.
  if (Object.hasOwn(sparkSenders, request.method)) return decodeRpcAction(request);
  const read = readers[request.method as keyof Readers] as (given: unknown) => Promise<readonly ActionUnit[]>;
  return { method: request.method, units: await read(request) };
}

const readers: Readers = {
  async eth_sendTransaction({ caip2, params, experimental_data_suffix: dataSuffix }) {
    const given = withSuffix({ transaction: params.transaction, dataSuffix });
    const filled = { ...typeOf(given), nonce: 0, ...given, chain_id: Number(evmChainId(caip2)) };
    const prepared = await prepareEthereumTransaction(filled as EthereumTransaction);
    const units = transactionUnits(await decodeEthereumTransaction(prepared.wireBytes()));
    return withoutSuffix(units, dataSuffix);
  },
  async wallet_sendCalls({ caip2, params, sponsor, experimental_data_suffix: dataSuffix }) {
    const chainId = evmChainId(caip2);
    const calls = params.calls.map((call, index) => readCall(call, `/calls/${index}`));
    const isOperation = sponsor === true;
    const units = (decodeBatch(encodeBatch(calls)) ?? []).map((call, index) => ({
      label: isOperation && calls.length === 1 ? 'transaction' : `call ${index}`,
      // The suffix is appended to the last call of a user operation. In a batch it is outside any call.
      ethereumCall: {
        ...(isOperation && index === calls.length - 1 ? suffixed(call, dataSuffix) : call),
        chainId,
      },
    }));
    return isOperation ? withoutSuffix(units, dataSuffix) : units;
  },
  async signAndSendTransaction({ params }) {
    return decodeSolanaUnits(params.transaction);
  },
  async tron_sendTransaction({ params: { raw_data: rawData } }) {
    const block = { ref_block_bytes: '0000', ref_block_hash: '0000000000000000', expiration: 0 };
    const bytes = encodeTronRawData({ ...block, ...rawData } as TronRawData);
    return decodeTronUnits(bytes) ?? [{ label: 'transaction', undecodable: 'of another kind' }];
  },
};

/** Returns the type that the fields of a transaction imply; nothing if the caller has set the type. */
function typeOf(transaction: UnsignedEthereumTransaction): { type?: number } {
  if (transaction.type !== undefined) return {};
  if ('authorization_list' in transaction) return { type: 4 };
  return 'gas_price' in transaction ? { type: 0 } : { type: 2 };
}

function evmChainId(caip2: string): bigint {
  const [, reference] = /^eip155:([0-9]{1,16})$/.exec(caip2) ?? [];
  if (reference === undefined)
    throw invalidField('/caip2', `expected \`eip155:\` and a chain id, got \`${caip2}\``);
  return BigInt(reference);
}

/**
 * Signs a hash, or bytes that are hashed first, in the signature form of the wallet's chain.
 *
 * @throws ApiError not_found; invalid_data for a payload that the chain does not support; not_supported for a
 * custodial wallet; policy_violation; what `requireAuthorization` throws.
 */
export async function rawSignWithWallet(
  context: OperationContext,
  walletId: string,
  request: RawSignRequest,
): Promise<RawSignResponse> {
  const wallet = await findWalletWithKey(context, walletId);
  if (wallet.custody_provider !== null)
    throw new ApiError('not_supported', 'a custodial wallet does not support raw_sign');
  const chainType = wallet.chain_type as ChainType;
  const input = request.params as RawSignParams;
  try {
    const use = await authorizeUse(context, wallet, {
      operation: 'rawSignWallet',
      request,
      prepare: async () => ({ action: decodeRawSignAction(chainType, input) }),
      allowsSigners: true,
    });
    const task = { method: 'raw_sign', params: input } as const;
    const signature = await signWithWalletKey(context, wallet, use.authorization, task);
    await use.recordOrDeny();
    return { method: 'raw_sign', data: { signature, encoding: 'hex' } };
  } catch (error) {
    throw asSigningRefusal(error);
  }
}
