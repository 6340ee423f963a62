import assert from 'node:assert/strict';
import type { WalletRpcRequest } from '../../../generated/schemas.ts';
import type { PlanContext } from '../../../operation-context.ts';
import { type ChainType, requireRpcMethod } from '../../../signing/chains.ts';
import { isSparkQuestion, planSparkAnswer } from '../../money/spark/ask-spark.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import { planAuthorizationNonce } from './authorization-nonce.ts';
import type { RpcPlan } from './rpc-plan.ts';
import { isSendingRequest, planRpcSend } from './rpc-senders.ts';
import { asksForSmartAccount, planSmartAccount } from './smart-account-signature.ts';

/**
 * Queries the chain for what an rpc request needs.
 *
 * @throws the verb's errors for a request that cannot be executed.
 */
export async function prepareRpc(
  context: PlanContext,
  walletId: string,
  request: WalletRpcRequest,
): Promise<RpcPlan> {
  const needsChain =
    request.method === 'eth_sign7702Authorization' ||
    isSparkQuestion(request) ||
    isSendingRequest(request) ||
    asksForSmartAccount(request);
  if (!needsChain) return { kind: 'signature' };
  const wallet = await findWallet(context, walletId);
  requireRpcMethod(wallet.chain_type as ChainType, request.method);
  if (isSparkQuestion(request))
    return { kind: 'spark', answer: await planSparkAnswer(context, wallet, request) };
  if (request.method === 'eth_sign7702Authorization') {
    return { kind: 'signature', pendingCount: await planAuthorizationNonce(context, wallet, request) };
  }
  if (asksForSmartAccount(request))
    return { kind: 'signature', smartAccount: await planSmartAccount(context, wallet, request) };
  assert(isSendingRequest(request), 'others need nothing from outside');
  return { kind: 'send', send: await planRpcSend(context, wallet, request) };
}
