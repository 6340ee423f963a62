import { requireOwner } from '../../authorization/require-owner.ts';
import { ApiError, invalidField } from '../../errors.ts';
import type { QuoteWalletTransferRequest, TransferQuoteResponse } from '../../generated/schemas.ts';
import type { OperationContext } from '../../services.ts';
import { signersOf } from '../wallets/authorize-use.ts';
import { findWallet } from '../wallets/find-wallet.ts';
import { readTransfer } from './transfer-terms.ts';

/**
 * Estimates a transfer that arrives as another asset or on another chain.
 *
 * CHOICE: without a bridge or an exchange every such pair is one that cannot be exchanged. An estimate that nobody
 * honours would be worse than none.
 *
 * @throws ApiError not_found; the codes of `requireOwner`; invalid_data for a plain transfer; not_supported.
 */
export async function quoteWalletTransfer(
  context: OperationContext,
  walletId: string,
  body: QuoteWalletTransferRequest,
): Promise<TransferQuoteResponse> {
  const wallet = await findWallet(context, walletId);
  await requireOwner(context, { ownerId: wallet.owner_id, signers: signersOf(wallet) });
  const { isExchange } = readTransfer(wallet, body);
  if (!isExchange) {
    throw invalidField('/destination', 'a plain transfer needs no quote: expected another asset or chain');
  }
  throw new ApiError('not_supported', '/destination: nobody here exchanges assets or bridges chains');
}
