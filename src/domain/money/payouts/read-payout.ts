import { type PayoutTerms, readPayoutTerms } from '../../../actions/payout-terms.ts';
import { ApiError } from '../../../errors.ts';
import type { CreateFiatPayoutRequest } from '../../../generated/schemas.ts';
import { refusingTerms } from '../../base/actions/refused-terms.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import { transferSenders } from '../wallet-actions/transfer-senders.ts';

/**
 * Reads the body of a payout.
 *
 * @throws ApiError invalid_data; not_supported.
 */
export function readPayout(wallet: WalletRow, body: CreateFiatPayoutRequest): PayoutTerms {
  if (wallet.custody_provider !== null) {
    throw new ApiError('not_supported', 'the custodian of this wallet takes no payouts from here yet');
  }
  const terms = refusingTerms(() => readPayoutTerms(wallet.chain_type, body));
  const { chain } = terms.asset;
  if (transferSenders[chain.chainType] !== undefined) return terms;
  throw new ApiError('not_supported', `/source/chain: no payouts on \`${chain.name}\` yet`);
}
