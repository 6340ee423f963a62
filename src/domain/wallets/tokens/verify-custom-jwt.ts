import { createPublicKey, type KeyObject } from 'node:crypto';
import { decodeProtectedHeader, errors, type JWK, type JWTPayload, jwtVerify } from 'jose';
import { userIdIn } from '../../../engine/authorization/user-vouchers.ts';
import { ApiError } from '../../../errors.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import type { AppSettings } from '../../access/apps/app.entity.ts';
import { isStrongEnough, type JwtAuthSettings, readAppSettings } from '../../access/apps/app-settings.ts';

type VerifyContext = Pick<OperationContext, 'jwks' | 'nowMs'>;

type Algorithm = 'RS256' | 'ES256';

const keyTypes: Readonly<Record<Algorithm, string>> = { RS256: 'RSA', ES256: 'EC' };

/**
 * Reads the user's id from a token that the app's own login issued.
 *
 * The signature and `exp` are verified, and `aud` when the app lists audiences; `iss` is not. If no key in the key set
 * fits the token, the set is fetched again. A token without `kid` may be signed by any key of its algorithm.
 *
 * @throws ApiError missing_or_invalid_token; failed_to_fetch_jwks_uri_document when the key set cannot be fetched.
 */
export async function verifyCustomerToken(
  context: VerifyContext,
  settings: JwtAuthSettings,
  token: string,
): Promise<string> {
  const { algorithm, kid } = readHeader(token);
  const keys = await findKeys(context, settings, algorithm, kid);
  if (keys.length === 0) throw invalidToken('no configured key fits its header');
  const payload = await verifyUnderAny(context, { settings, token, algorithm, keys });
  const claim = payload[settings.user_id_claim];
  const userId = userIdIn(claim);
  if (userId !== undefined) return userId;
  const isNumber = typeof claim === 'number';
  throw invalidToken(
    `the claim \`${settings.user_id_claim}\` is ${isNumber ? 'a number that JSON cannot represent exactly: send a string' : 'missing'}`,
  );
}

/**
 * Fetches the configured key set once, so that a wrong URL is found when an operator sets it.
 *
 * @throws ApiError failed_to_fetch_jwks_uri_document
 */
export async function checkJwtAuthReachable(
  { jwks }: Pick<VerifyContext, 'jwks'>,
  settings: AppSettings,
): Promise<void> {
  const url = readAppSettings(settings).jwt_auth?.jwks_url;
  if (url !== undefined) await fetchKeySet({ jwks }, url, false);
}

async function verifyUnderAny(
  { nowMs }: Pick<VerifyContext, 'nowMs'>,
  {
    settings,
    token,
    algorithm,
    keys,
  }: {
    readonly settings: JwtAuthSettings;
    readonly token: string;
    readonly algorithm: Algorithm;
    readonly keys: readonly KeyObject[];
  },
): Promise<JWTPayload> {
  for (const key of keys) {
    try {
      const { payload } = await jwtVerify(token, key, {
        algorithms: [algorithm],
        requiredClaims: ['exp'],
        currentDate: new Date(nowMs),
        ...(settings.audiences.length === 0 ? {} : { audience: [...settings.audiences] }),
      });
      return payload;
    } catch (error) {
      if (!(error instanceof errors.JOSEError)) throw error;
      if (!(error instanceof errors.JWSSignatureVerificationFailed))
        throw invalidToken(reasonOf(error), error);
    }
  }
  throw invalidToken('its signature does not verify');
}

async function findKeys(
  context: VerifyContext,
  { jwks_url: url, verification_key: pem }: JwtAuthSettings,
  algorithm: Algorithm,
  kid: string | undefined,
): Promise<KeyObject[]> {
  if (pem !== undefined) {
    const key = createPublicKey(pem);
    return key.asymmetricKeyType === keyTypes[algorithm].toLowerCase() ? [key] : [];
  }
  if (url === undefined) return [];
  const fitting = (keys: readonly JWK[]) => keys.filter((key) => fits(key, algorithm, kid));
  const known = fitting(await fetchKeySet(context, url, false));
  const chosen = known.length > 0 ? known : fitting(await fetchKeySet(context, url, true));
  return chosen.flatMap(importUsable);
}

function fits(key: JWK, algorithm: Algorithm, kid: string | undefined): boolean {
  return (
    key.kty === keyTypes[algorithm] &&
    (key.alg === undefined || key.alg === algorithm) &&
    (key.use === undefined || key.use === 'sig') &&
    (kid === undefined || key.kid === kid)
  );
}

// A broken or weak key in a set does not invalidate the other keys.
function importUsable(jwk: JWK): KeyObject[] {
  try {
    const key = createPublicKey({ key: jwk, format: 'jwk' });
    return isStrongEnough(key) ? [key] : [];
  } catch {
    return [];
  }
}

async function fetchKeySet(
  { jwks }: Pick<VerifyContext, 'jwks'>,
  url: string,
  isKidUnknown: boolean,
): Promise<readonly JWK[]> {
  try {
    return (await jwks.keys(url, isKidUnknown)) as readonly JWK[];
  } catch (error) {
    throw new ApiError('failed_to_fetch_jwks_uri_document', undefined, { cause: error });
  }
}

function readHeader(token: string): { algorithm: Algorithm; kid: string | undefined } {
  let header: { alg?: unknown; kid?: string };
  try {
    header = decodeProtectedHeader(token);
  } catch (error) {
    throw invalidToken('it is not a JWT', error);
  }
  if (header.alg !== 'RS256' && header.alg !== 'ES256') throw invalidToken('expected `alg` RS256 or ES256');
  return { algorithm: header.alg, kid: header.kid };
}

function reasonOf(error: errors.JOSEError): string {
  if (error instanceof errors.JWTExpired) return 'it has expired';
  if (error instanceof errors.JWTClaimValidationFailed)
    return `the claim \`${error.claim}\` is ${error.reason}`;
  return 'it is malformed';
}

/** Returns the 401 error for a user token in a body, with the reason. */
export function invalidToken(reason: string, cause?: unknown): ApiError {
  return new ApiError('missing_or_invalid_token', `the user JWT is not valid: ${reason}`, { cause });
}
