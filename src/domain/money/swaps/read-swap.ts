import { readSwapTerms, type SwapBody, type SwapTerms } from '../../../actions/swap-terms.ts';
import { ApiError } from '../../../errors.ts';
import { refusingTerms } from '../../base/actions/refused-terms.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';

/** A swap of a wallet. */
export interface WalletSwap extends SwapTerms {
  readonly recipient: string;
}

/**
 * Reads the body of a swap or of a swap quote.
 *
 * @throws ApiError invalid_data naming the field; not_supported for chains that the wallet is not on, for assets that
 * are not swapped for each other, and for wallets that a custodian holds.
 */
export function readSwap(
  wallet: Pick<WalletRow, 'chain_type' | 'custody_provider' | 'address'>,
  body: SwapBody,
): WalletSwap {
  if (wallet.custody_provider !== null) {
    throw new ApiError('not_supported', 'the custodian of this wallet takes no swaps from here yet');
  }
  const terms = refusingTerms(() => readSwapTerms(wallet.chain_type, body));
  return { ...terms, recipient: terms.recipient ?? wallet.address };
}
