import { type PayoutTerms, payoutAction, readPayoutTerms } from '../../actions/payout-terms.ts';
import { RequestTermsError } from '../../actions/request-terms-error.ts';
import type { CreateFiatPayoutRequest } from '../../generated/schemas.ts';
import type { BuiltPart } from './built-part.ts';
import type { Fields } from './completed-fields.ts';
import type { SignTask } from './requested-task.ts';
import { isOfAsset, movementOf } from './requested-transfer.ts';

/**
 * What a task is of the payout that the body asks for: one transfer of the asset and the amount; undefined if it is
 * anything else.
 *
 * NOTE: to whom the provider wants to be paid is what the server says: the provider chooses it for each payout.
 */
export function partOfPayout(body: Fields, task: SignTask, chainType: string): BuiltPart | undefined {
  const terms = termsOf(chainType, body);
  const movement = movementOf(task, chainType);
  if (terms === undefined || movement === undefined) return undefined;
  if (!isOfAsset(movement, terms.asset, chainType) || movement.rawAmount !== terms.rawAmount)
    return undefined;
  const action = () => payoutAction(body as Fields & CreateFiatPayoutRequest, terms);
  return { role: 'pays', atOnce: 1, accounts: [], action };
}

function termsOf(chainType: string, body: Fields): PayoutTerms | undefined {
  if (!isPayoutRequest(body)) return undefined;
  try {
    return readPayoutTerms(chainType, body);
  } catch (error) {
    if (error instanceof RequestTermsError) return undefined;
    throw error;
  }
}

/** As far as it is read; the server has validated what it accepts. */
function isPayoutRequest(body: Fields): body is Fields & CreateFiatPayoutRequest {
  const { source, destination } = body;
  if (typeof source !== 'object' || source === null || typeof destination !== 'object') return false;
  const { asset, chain, amount } = source as Fields;
  return [asset, chain, amount].every((text) => typeof text === 'string') && destination !== null;
}
