import { readTransferTerms, type TransferTerms, transferAction } from '../../../actions/transfer-terms.ts';
import { ApiError } from '../../../errors.ts';
import type { QuoteWalletTransferRequest, TransferRequest } from '../../../generated/schemas.ts';
import type { PolicyAction } from '../../../policy/action.ts';
import { refusingTerms } from '../../base/actions/refused-terms.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';

/**
 * Reads the body of a transfer or of a transfer quote.
 *
 * @throws ApiError invalid_data naming the field; not_supported for a chain that the wallet is not on and for an
 * asset that is not on it.
 */
export function readTransfer(
  { chain_type: chainType, custody_chain: held }: Pick<WalletRow, 'chain_type' | 'custody_chain'>,
  body: TransferRequest | QuoteWalletTransferRequest,
): TransferTerms {
  const terms = refusingTerms(() => readTransferTerms(chainType, body));
  if (held !== null && held !== terms.source.chain.name) {
    throw new ApiError('not_supported', `/source/chain: the custodian holds this wallet on \`${held}\``);
  }
  return terms;
}

/**
 * The action that policies evaluate for a transfer that is not executed.
 *
 * @throws ApiError as `readTransfer`; not_supported for an exchange that has to be asked what it costs.
 */
export function decodeTransfer(chainType: string, body: TransferRequest): PolicyAction {
  return refusingTerms(() => transferAction(body, readTransferTerms(chainType, body)));
}
