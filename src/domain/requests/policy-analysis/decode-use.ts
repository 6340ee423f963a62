import { decodeRpcAction } from '../../../actions/decode-action.ts';
import { decodeRawSignAction } from '../../../actions/decode-raw-bytes.ts';
import { exportAction } from '../../../actions/export-action.ts';
import { callingAccount, unfoldBatches } from '../../../actions/unfold-batches.ts';
import { invalidField } from '../../../errors.ts';
import type {
  ExportWalletRequest,
  RawSignRequest,
  TransferRequest,
  WalletRpcRequest,
} from '../../../generated/schemas.ts';
import type { PolicyAction } from '../../../policy/action.ts';
import { type ChainType, requireRpcMethod } from '../../../signing/chains.ts';
import type { RawSignParams } from '../../../signing/raw-sign.ts';
import { asSigningRefusal } from '../../base/actions/wallet-signing-error.ts';
import { decodeTransfer } from '../../money/wallet-actions/read-transfer.ts';
import type { WalletUse } from '../../wallets/wallet-uses/record-use.ts';
import { readSentAction } from '../wallet-rpc/read-sent-action.ts';
import { isSendingRequest } from '../wallet-rpc/rpc-senders.ts';

/** The operations whose requests can be evaluated without being executed. */
const judgeableOperations = ['walletRpc', 'rawSignWallet', 'exportWallet', 'transferFromWallet'] as const;

/**
 * The action of a wallet request as policies see it, decoded as on execution.
 *
 * @throws ApiError invalid_data, invalid_solana_transaction, not_supported: the codes of the operation for a request
 * that it would not sign. Pointers are into the request's body.
 *
 * @param address the wallet's address; without it, a call from the wallet to itself is not recognized.
 */
export async function decodeUse(
  { chainType, address }: { readonly chainType: ChainType; readonly address: string | undefined },
  { operation, request }: WalletUse,
): Promise<PolicyAction> {
  try {
    switch (operation) {
      case 'walletRpc':
        return unfoldBatches(
          await decodeRpc(chainType, request as WalletRpcRequest),
          callingAccount(request as WalletRpcRequest, address),
        );
      case 'rawSignWallet':
        return decodeRawSignAction(chainType, (request as RawSignRequest).params as RawSignParams);
      case 'exportWallet':
        return exportAction((request as ExportWalletRequest).export_seed_phrase === true);
      case 'transferFromWallet':
        return decodeTransfer(chainType, request as TransferRequest);
    }
  } catch (error) {
    throw asSigningRefusal(error);
  }
  throw invalidField('/operation', `must be one of ${judgeableOperations.join(', ')}`);
}

async function decodeRpc(chainType: ChainType, request: WalletRpcRequest): Promise<PolicyAction> {
  requireRpcMethod(chainType, request.method);
  const { method } = request;
  if (method === 'exportPrivateKey' || method === 'exportSeedPhrase') {
    return exportAction(method === 'exportSeedPhrase');
  }
  return isSendingRequest(request) ? readSentAction(request) : decodeRpcAction(request);
}
