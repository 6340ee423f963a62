import { ApiError } from '../../../errors.ts';
import type { OperationContext, Services } from '../../../operation-context.ts';
import type { CardEnvironment, CardIssuer } from '../../../ports/card-issuers.ts';
import { askProvider } from '../fiat-customers/find-provider.ts';

/**
 * The user whose access token the request carries.
 *
 * @throws ApiError missing_or_invalid_token for the app secret alone.
 */
export function requireCardUser({ proof }: Pick<OperationContext, 'proof'>): string {
  if (proof.userId !== undefined) return proof.userId;
  throw new ApiError('missing_or_invalid_token', 'expected the access token of a user');
}

/**
 * The issuer of an environment.
 *
 * @throws ApiError not_supported if it is not configured.
 */
export function findIssuer(
  { cardIssuers }: Pick<Services, 'cardIssuers'>,
  environment: CardEnvironment,
): CardIssuer {
  const found = cardIssuers.find(environment);
  if (found !== undefined) return found;
  throw new ApiError(
    'not_supported',
    `/environment: no card issuer is configured here for \`${environment}\``,
  );
}

/**
 * Calls the issuer. Call it outside any transaction.
 *
 * @throws ApiError unavailable if the issuer cannot be reached; the caller may send the same request again.
 */
export function askIssuer<Answer>(call: () => Promise<Answer>): Promise<Answer> {
  return askProvider('cards', call);
}
