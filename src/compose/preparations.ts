import { prepareQuote } from '../domain/money/wallet-actions/quote-transfer.ts';
import { prepareTransfer } from '../domain/money/wallet-actions/transfer-from-wallet.ts';
import { prepareProposed } from '../domain/requests/intents/prepare-proposed.ts';
import { prepareRpc } from '../domain/requests/wallet-rpc/prepare-rpc.ts';
import type { OperationContext, OperationInput } from '../operation-context.ts';

/** What operations ask of chains before their transactions begin, the same in every composition. */
export const preparations = {
  walletRpc: ({ path, body }: OperationInput<'walletRpc'>, context: OperationContext) =>
    prepareRpc(context, path.wallet_id, body),
  transferFromWallet: ({ path, body }: OperationInput<'transferFromWallet'>, context: OperationContext) =>
    prepareTransfer(context, path.wallet_id, body),
  quoteWalletTransfer: ({ path, body }: OperationInput<'quoteWalletTransfer'>, context: OperationContext) =>
    prepareQuote(context, path.wallet_id, body),
  authorizeIntent: ({ path }: OperationInput<'authorizeIntent'>, context: OperationContext) =>
    prepareProposed(context, path.intent_id),
};
