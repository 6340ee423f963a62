import {
  readTransferTerms,
  type TransferTerms,
  TransferTermsError,
  transferAction,
} from '../../../actions/transfer-terms.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type { QuoteWalletTransferRequest, TransferRequest } from '../../../generated/schemas.ts';
import type { PolicyAction } from '../../../policy/action.ts';
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
  const terms = refusing(() => readTransferTerms(chainType, body));
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
  return refusing(() => transferAction(body, readTransferTerms(chainType, body)));
}

function refusing<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof TransferTermsError)) throw error;
    const { code, pointer, message } = error;
    throw code === 'invalid_data'
      ? invalidField(pointer, message)
      : new ApiError(code, `${pointer}: ${message}`);
  }
}
