import { notFound } from '../../../errors.ts';
import type { CardConfig } from '../../../generated/schemas.ts';
import type { PlanContext } from '../../../operation-context.ts';
import type { CardEnvironment } from '../../../ports/card-issuers.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import { askIssuer, findIssuer } from './find-issuer.ts';

/**
 * What a page needs to work with the issuer. It is public, so the app secret suffices.
 *
 * @throws ApiError not_found for another app, not_supported, unavailable
 */
export async function readCardConfig(
  context: PlanContext,
  appId: string,
  environment: CardEnvironment,
): Promise<CardConfig> {
  if (lookupKey(appId) !== context.app.id) throw notFound('App');
  const issuer = findIssuer(context, environment);
  const { publishableKey, logoUrl, spenderAddress } = await askIssuer(() => issuer.program());
  return { publishable_key: publishableKey, card_logo_url: logoUrl, spender_address: spenderAddress };
}
