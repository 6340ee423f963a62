import { ApiError, isUnavailable } from '../../../errors.ts';
import type { Services } from '../../../operation-context.ts';
import type { FiatEnvironment, FiatProvider } from '../../../ports/fiat-providers.ts';

/** CHOICE: the provider's environment when a request names none, the same in all fiat operations. */
const DEFAULT_ENVIRONMENT: FiatEnvironment = 'production';

/** A provider and its environment, as a request names them. */
export interface NamedProvider {
  readonly provider: string;
  readonly environment?: FiatEnvironment | undefined;
}

/** The environment that a request means. */
export function environmentOf({ environment }: Pick<NamedProvider, 'environment'>): FiatEnvironment {
  return environment ?? DEFAULT_ENVIRONMENT;
}

/**
 * The provider that a request names.
 *
 * @throws ApiError not_supported if this environment of the provider is not configured.
 */
export function findProvider(
  { fiatProviders }: Pick<Services, 'fiatProviders'>,
  named: NamedProvider,
): FiatProvider {
  const environment = environmentOf(named);
  const found = fiatProviders.find(named.provider, environment);
  if (found !== undefined) return found;
  throw new ApiError(
    'not_supported',
    `/provider: the provider \`${named.provider}\` is not configured here for \`${environment}\``,
  );
}

const RETRY_AFTER_SECONDS = 2;

/**
 * Calls the provider. Call it outside any transaction.
 *
 * @throws ApiError unavailable if the provider cannot be reached; the caller may send the same request again.
 */
export async function askProvider<Answer>(provider: string, call: () => Promise<Answer>): Promise<Answer> {
  try {
    return await call();
  } catch (cause) {
    if (!isUnavailable(cause)) throw cause;
    throw new ApiError('unavailable', `the provider \`${provider}\` is unavailable; try again`, {
      cause,
      headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
    });
  }
}
