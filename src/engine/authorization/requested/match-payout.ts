import type { CreateFiatPayoutRequest } from '../../../generated/schemas.ts';
import { payoutAction, readPayoutTerms } from '../../actions/payout-terms.ts';
import type { BuiltPart } from './built-part.ts';
import { acceptedTerms, actionFields, areTexts, type Fields, hasOnly } from './completed-fields.ts';
import type { SignTask } from './match-task.ts';
import { isOfAsset, movementOf } from './match-transfer.ts';

/**
 * Determines which part a task plays in the payout of the body: it must be one transfer of the asset and the amount.
 * Returns undefined for any other task.
 *
 * NOTE: the server supplies the recipient, because the provider chooses an address for each payout. The signer cannot
 * see the fee that the server orders from the provider either. Policies evaluate the fee in the body.
 */
export function partOfPayout(body: Fields, task: SignTask, chainType: string): BuiltPart | undefined {
  const terms = isPayoutRequest(body) ? acceptedTerms(() => readPayoutTerms(chainType, body)) : undefined;
  const movement = movementOf(task, chainType);
  if (terms === undefined || movement === undefined) return undefined;
  if (!isOfAsset(movement, terms.asset, chainType) || movement.rawAmount !== terms.rawAmount)
    return undefined;
  const action = () => ({
    action: payoutAction(body as Fields & CreateFiatPayoutRequest, terms),
    unknown: [],
  });
  return { role: 'pays', atOnce: 1, accounts: [], action };
}

/** Checks only the fields that this file reads. The server has validated the rest of the body. */
function isPayoutRequest(body: Fields): body is Fields & CreateFiatPayoutRequest {
  const { source, destination, developer_fee_percent: fee } = body;
  if (!hasOnly(body, ['source', 'destination', 'developer_fee_percent', ...actionFields])) return false;
  if (fee !== undefined && typeof fee !== 'string') return false;
  if (!areTexts(source, ['asset', 'chain', 'amount'])) return false;
  return areTexts(destination, ['fiat_account_id'], ['payment_rail']);
}
