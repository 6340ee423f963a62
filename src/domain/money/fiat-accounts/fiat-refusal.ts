import { ApiError, invalidField } from '../../../errors.ts';
import type { FiatRefusal } from '../../../ports/fiat-providers.ts';

/**
 * The refusal of a provider as the response.
 *
 * @param at pointers to the submitted data, and to the currency or asset, in the body.
 */
export function fiatRefusal(
  { fault, pointer = '', message }: FiatRefusal,
  at: { readonly data: string; readonly pair: string },
): ApiError {
  if (fault === 'pair') return new ApiError('not_supported', `${at.pair}: ${message}`);
  if (fault === 'customer') return new ApiError('invalid_state', message);
  return invalidField(at.data + pointer, message);
}
