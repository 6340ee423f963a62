import type { WalletRpcRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { type ChainType, requireRpcMethod } from '../../../signing/chains.ts';
import { isSparkQuestion, planSparkAnswer } from '../../money/spark/ask-spark.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import { planAuthorizationNonce } from './authorization-nonce.ts';
import { isSendingRequest, senderOf } from './rpc-senders.ts';

/**
 * Asks the chain what an rpc request will need, before its transaction begins; undefined for methods that need none.
 *
 * @throws what the verb throws for a request that cannot be carried out.
 */
export async function prepareRpc(
  context: OperationContext,
  walletId: string,
  request: WalletRpcRequest,
): Promise<unknown> {
  const isAuthorization = request.method === 'eth_sign7702Authorization';
  const isQuestion = isSparkQuestion(request);
  if (!isAuthorization && !isQuestion && !isSendingRequest(request)) return undefined;
  const wallet = await findWallet(context, walletId);
  requireRpcMethod(wallet.chain_type as ChainType, request.method);
  if (isQuestion) return planSparkAnswer(context, wallet, request);
  return isAuthorization
    ? planAuthorizationNonce(context, wallet, request)
    : senderOf(request).plan(context, wallet, request);
}
