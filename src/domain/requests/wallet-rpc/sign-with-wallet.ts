import assert from 'node:assert/strict';
import { decodeRpcAction } from '../../../actions/decode-action.ts';
import { callingAccount, unfoldBatches } from '../../../actions/unfold-batches.ts';
import { ApiError } from '../../../errors.ts';
import type { WalletRpcRequest, WalletRpcResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { type Planned, unwrapPlan } from '../../../planned.ts';
import { type ChainType, requireRpcMethod } from '../../../signing/chains.ts';
import { wrapForDeployment } from '../../../signing/ethereum/light-account.ts';
import { isOfflineMethod, type OfflineMethod } from '../../../signing/offline-rpc.ts';
import { asSigningRefusal } from '../../base/actions/wallet-signing-error.ts';
import { isSparkQuestion } from '../../money/spark/ask-spark.ts';
import { authorizeUse } from '../../wallets/wallet-uses/authorize-use.ts';
import { signWithWalletKey } from '../../wallets/wallet-uses/use-wallet-key.ts';
import { findWalletWithKey } from '../../wallets/wallets/find-wallet.ts';
import type { FoundWallet } from '../../wallets/wallets/wallet-row.ts';
import { fillAuthorizationNonce } from './authorization-nonce.ts';
import { exportWallet } from './export-wallet.ts';
import type { DecodedRpc, RpcPlan } from './rpc-plan.ts';
import { isSendingRequest } from './rpc-senders.ts';
import { decodeSend } from './send-by-rpc.ts';

type SignaturePlan = Extract<RpcPlan, { kind: 'signature' }>;
type SignatureRequest = Extract<WalletRpcRequest, { method: OfflineMethod; params: object }>;

export interface RpcInput {
  readonly walletId: string;
  readonly request: WalletRpcRequest;
  /** From `prepareRpc`. */
  readonly planned: Planned<RpcPlan>;
}

/**
 * Runs one rpc method with a wallet's key, including broadcasts. If the wallet has an owner, the owner or an
 * additional signer must have signed the request, and every applicable policy must allow it. The request's `address`,
 * `chain_type` and `wallet_id` are informational and have no effect.
 *
 * @throws ApiError not_found; invalid_data for a method of another chain type or params that cannot be signed;
 * invalid_solana_transaction; not_supported for a custodial wallet and for methods that need a network; the codes of
 * `requireOwner`; policy_violation.
 */
export async function signWithWallet(
  context: OperationContext,
  { walletId, request, planned }: RpcInput,
): Promise<WalletRpcResponse> {
  const wallet = await findWalletWithKey(context, walletId);
  if (wallet.custody_provider !== null)
    throw new ApiError('not_supported', 'a custodial wallet does not support rpc');
  try {
    requireRpcMethod(wallet.chain_type as ChainType, request.method);
    return (await answer(context, wallet, { request, planned })) as WalletRpcResponse;
  } catch (error) {
    throw asSigningRefusal(error);
  }
}

async function answer(
  context: OperationContext,
  wallet: FoundWallet,
  { request, planned }: Omit<RpcInput, 'walletId'>,
): Promise<{ method: string; data: unknown }> {
  const { method } = request;
  if (method === 'exportPrivateKey' || method === 'exportSeedPhrase') {
    const params = { ...request.params, export_seed_phrase: method === 'exportSeedPhrase' };
    return { method, data: await exportWallet(context, wallet.id, params, '/params') };
  }
  if (!isSendingRequest(request) && !isSparkQuestion(request) && !isSignatureRequest(request)) {
    // CHOICE: 400 and not 501, which clients would retry.
    throw new ApiError('not_supported', `/method: \`${method}\` is not implemented yet`);
  }
  const use = await authorizeUse(context, wallet, {
    operation: 'walletRpc',
    request,
    decode: () => decodeRpc(context, wallet, { request, plan: unwrapPlan(planned) }),
    mayBeSigner: true,
  });
  return { method, data: await use.decoded.perform(use.record) };
}

function decodeRpc(
  context: OperationContext,
  wallet: FoundWallet,
  { request, plan }: { readonly request: WalletRpcRequest; readonly plan: RpcPlan },
): Promise<DecodedRpc> {
  switch (plan.kind) {
    case 'send':
      return decodeSend(context, wallet, plan.send);
    case 'spark':
      return decodeQuestion(request, plan.answer);
    case 'signature':
      assert(isSignatureRequest(request), 'methods that only sign need nothing from outside');
      return decodeSignature(context, wallet, { request, ...plan });
  }
}

/**
 * CHOICE: nothing is signed, but owner authorization and policies apply as for a signature, because rpc is for callers
 * that may use the wallet.
 */
async function decodeQuestion(request: WalletRpcRequest, answer: object): Promise<DecodedRpc> {
  return {
    action: await decodeRpcAction(request),
    async perform(record) {
      await record();
      return answer;
    },
  };
}

async function decodeSignature(
  context: OperationContext,
  wallet: FoundWallet,
  {
    request,
    pendingCount,
    smartAccount,
  }: { request: SignatureRequest } & Pick<SignaturePlan, 'pendingCount' | 'smartAccount'>,
): Promise<DecodedRpc> {
  const { method } = request;
  const filled =
    method === 'eth_sign7702Authorization'
      ? await fillAuthorizationNonce(context, wallet, { params: request.params, pendingCount })
      : request.params;
  const params = smartAccount === undefined ? filled : { ...filled, smart_account: smartAccount.verifying };
  const decoding = decodeRpcAction(request);
  const action = decoding instanceof Promise ? await decoding : decoding;
  return {
    action: unfoldBatches(action, callingAccount(request, wallet.address)),
    onlySigns: true,
    async perform(record) {
      // The contract has checked the params against the method's own schema.
      const data = await signWithWalletKey<OfflineMethod>(context, wallet, { method, params } as never);
      await record();
      if (smartAccount === undefined || smartAccount.isDeployed) return data;
      const { signature } = data as { readonly signature: string };
      return { ...data, signature: wrapForDeployment(smartAccount.factory, wallet.address, signature) };
    },
  };
}

function isSignatureRequest(request: WalletRpcRequest): request is SignatureRequest {
  return isOfflineMethod(request.method) && 'params' in request;
}
