import { ApiError } from '../../../errors.ts';
import type { WalletRpcRequest, WalletRpcResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { type ChainType, requireRpcMethod } from '../../../signing/chains.ts';
import { isOfflineMethod, type OfflineMethod, signOffline } from '../../../signing/offline-rpc.ts';
import { decodeRpcAction } from '../../base/actions/decode-action.ts';
import { callingAccount, unfoldBatches } from '../../base/actions/unfold-batches.ts';
import { asSigningRefusal } from '../../base/actions/wallet-signing-error.ts';
import { askSpark, isSparkQuestion } from '../../money/spark/ask-spark.ts';
import { authorizeUse } from '../../wallets/wallet-uses/authorize-use.ts';
import { useWalletKey } from '../../wallets/wallet-uses/use-wallet-key.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import type { FoundWallet } from '../../wallets/wallets/wallet-row.ts';
import { fillAuthorizationNonce } from './authorization-nonce.ts';
import { exportWallet } from './export-wallet.ts';
import { isSendingRequest } from './rpc-senders.ts';
import { sendByRpc } from './send-by-rpc.ts';

/**
 * Runs one rpc method with a wallet's key, sending what the method sends. The wallet's owner or one of its additional
 * signers must have signed the request, when there is an owner, and every policy that applies must allow it.
 * `address`, `chain_type` and `wallet_id` of the request inform and decide nothing.
 *
 * @throws ApiError not_found; invalid_data for a method of another chain type or params that cannot be signed;
 * invalid_solana_transaction; not_supported for a custodial wallet and for methods that need a network; the codes
 * of `requireOwner`; policy_violation.
 */
export async function signWithWallet(
  context: OperationContext,
  walletId: string,
  request: WalletRpcRequest,
): Promise<WalletRpcResponse> {
  const wallet = await findWallet(context, walletId);
  if (wallet.custody_provider !== null) throw new ApiError('not_supported', 'a custodial wallet has no rpc');
  try {
    requireRpcMethod(wallet.chain_type as ChainType, request.method);
    return (await answer(context, wallet, request)) as WalletRpcResponse;
  } catch (error) {
    throw asSigningRefusal(error);
  }
}

async function answer(
  context: OperationContext,
  wallet: FoundWallet,
  request: WalletRpcRequest,
): Promise<{ method: string; data: unknown }> {
  const { method } = request;
  if (method === 'exportPrivateKey' || method === 'exportSeedPhrase') {
    const params = { ...request.params, export_seed_phrase: method === 'exportSeedPhrase' };
    return { method, data: await exportWallet(context, wallet.id, params, '/params') };
  }
  if ('signature_options' in request && request.signature_options?.type === 'erc1271') {
    throw new ApiError('not_supported', '/signature_options/type: the wallet has no smart account');
  }
  if (isSendingRequest(request)) return { method, data: await sendByRpc(context, wallet, request) };
  if (isSparkQuestion(request)) return { method, data: await askSpark(context, wallet, request) };
  if (!isOfflineMethod(method) || !('params' in request)) {
    // CHOICE: 400 and not 501, which clients would try again.
    throw new ApiError('not_supported', `/method: \`${method}\` is not built yet`);
  }
  // The contract has checked the params against the method's own schema.
  let params = request.params as never;
  const decode = async () => {
    if (request.method === 'eth_sign7702Authorization') {
      params = (await fillAuthorizationNonce(context, wallet, request)) as never;
    }
    return unfoldBatches(await decodeRpcAction(request), callingAccount(request, wallet.address));
  };
  const use = await authorizeUse(context, wallet, {
    operation: 'walletRpc',
    request,
    decode,
    mayBeSigner: true,
  });
  const data = await useWalletKey(context, wallet, ({ privateKey }) =>
    signOffline<OfflineMethod>(method, privateKey, params),
  );
  await use.record();
  return { method, data };
}
