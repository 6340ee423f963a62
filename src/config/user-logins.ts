import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import * as check from './checks.ts';

/** How a signer verifies the tokens of an app's own login. */
export interface UserLoginSettings {
  readonly keys: readonly {
    readonly algorithm: 'RS256' | 'ES256';
    readonly kid: string | undefined;
    readonly key: KeyObject;
  }[];
  readonly userIdClaim: string;
  readonly audiences: readonly string[];
}

const NAME = 'CUSTOS_USER_LOGINS_FILE';
const MIN_RSA_BITS = 2048;

/**
 * Reads the logins that a signer verifies: a JSON object by app id, with `verification_key` (PEM) or `keys` (of a
 * JWKS), and `user_id_claim` and `audiences` as in the app's `jwt_auth`. They are not read from the database, because
 * the signer does not trust it.
 */
export function userLogins(
  faults: check.Faults,
  { [NAME]: path }: check.Environment,
): ReadonlyMap<string, UserLoginSettings> {
  const text = path === undefined ? undefined : check.readText(faults, NAME, path);
  const found = new Map<string, UserLoginSettings>();
  if (text === undefined) return found;
  for (const [appId, login] of Object.entries(readObject(faults, text))) {
    try {
      found.set(appId, loginOf(login));
    } catch (error) {
      faults.push(`${NAME}: app \`${appId}\`: ${(error as Error).message}`);
    }
  }
  return found;
}

function readObject(faults: check.Faults, text: string): object {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed;
  } catch {
    // The text is not JSON.
  }
  faults.push(`${NAME}: expected a JSON object by app id`);
  return {};
}

interface Fields {
  readonly verification_key?: unknown;
  readonly keys?: unknown;
  readonly user_id_claim?: unknown;
  readonly audiences?: unknown;
}

function loginOf(value: unknown): UserLoginSettings {
  const {
    verification_key: pem,
    keys,
    user_id_claim: claim = 'sub',
    audiences = [],
  } = (value ?? {}) as Fields;
  if ((pem === undefined) === (keys === undefined)) {
    throw new Error('expected either `verification_key` or `keys`');
  }
  if (typeof claim !== 'string') throw new Error('expected a text for `user_id_claim`');
  if (!Array.isArray(audiences) || !audiences.every((each) => typeof each === 'string')) {
    throw new Error('expected a list of texts for `audiences`');
  }
  if (keys !== undefined && !Array.isArray(keys)) throw new Error('expected a list of JWKs for `keys`');
  const found = keys === undefined ? [keyOf(createPublicKey(String(pem)))] : keys.flatMap(keyOfJwk);
  if (found.length === 0) throw new Error('expected at least one key that signs');
  return { keys: found, userIdClaim: claim, audiences };
}

function keyOfJwk(jwk: JsonWebKey & { readonly use?: unknown; readonly kid?: unknown }) {
  if (jwk.use !== undefined && jwk.use !== 'sig') return [];
  const key = keyOf(createPublicKey({ key: jwk, format: 'jwk' }));
  return [{ ...key, kid: typeof jwk.kid === 'string' ? jwk.kid : undefined }];
}

function keyOf(key: KeyObject): UserLoginSettings['keys'][number] {
  const { modulusLength = 0, namedCurve } = key.asymmetricKeyDetails ?? {};
  const isRsa = key.asymmetricKeyType === 'rsa' && modulusLength >= MIN_RSA_BITS;
  if (!isRsa && namedCurve !== 'prime256v1') {
    throw new Error(`expected RSA keys of at least ${MIN_RSA_BITS} bits, or P-256 keys`);
  }
  return { algorithm: isRsa ? 'RS256' : 'ES256', kid: undefined, key };
}
