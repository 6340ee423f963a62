import type { WalletRpcRequest } from '../../../generated/schemas.ts';
import type { PreparationContext } from '../../../operation-context.ts';
import { type ChainType, requireRpcMethod } from '../../../signing/chains.ts';
import { isSparkQuestion, planSparkAnswer } from '../../money/spark/ask-spark.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import { planAuthorizationNonce } from './authorization-nonce.ts';
import type { RpcPlan } from './rpc-plan.ts';
import { isSendingRequest, planRpcSend } from './rpc-senders.ts';

/**
 * Queries the chain for what an rpc request needs.
 *
 * @throws the verb's errors for a request that cannot be executed.
 */
export async function prepareRpc(
  context: PreparationContext,
  walletId: string,
  request: WalletRpcRequest,
): Promise<RpcPlan> {
  const isAuthorization = request.method === 'eth_sign7702Authorization';
  const isQuestion = isSparkQuestion(request);
  if (!isAuthorization && !isQuestion && !isSendingRequest(request)) return { kind: 'signature' };
  const wallet = await findWallet(context, walletId);
  requireRpcMethod(wallet.chain_type as ChainType, request.method);
  if (isQuestion) return { kind: 'spark', answer: await planSparkAnswer(context, wallet, request) };
  if (isAuthorization) {
    return { kind: 'signature', pendingCount: await planAuthorizationNonce(context, wallet, request) };
  }
  return { kind: 'send', send: await planRpcSend(context, wallet, request) };
}
