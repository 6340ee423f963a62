import { hash, type KeyObject } from 'node:crypto';
import { decodeProtectedHeader, type JWTPayload, jwtVerify } from 'jose';
import { userIdIn } from '../../authorization/user-vouchers.ts';

/** How the vault verifies the tokens of an app's own login. */
export interface UserLogin {
  readonly keys: readonly LoginKey[];
  /** The claim that contains the user's id. */
  readonly userIdClaim: string;
  /** Accepted `aud` values; empty accepts any. */
  readonly audiences: readonly string[];
}

interface LoginKey {
  readonly algorithm: 'RS256' | 'ES256';
  /** Undefined for a key that any `kid` may name. */
  readonly kid: string | undefined;
  readonly key: KeyObject;
}

/**
 * The user whom a token of the app's own login names, for a key that is encrypted to this recipient; undefined if the
 * token is not valid. A token with `cnf.jkt` (RFC 7800, RFC 7638) is valid for that recipient only.
 *
 * @param recipient 65-byte point; undefined for a key that is handed over as it is.
 */
export async function subjectOfToken(
  login: UserLogin,
  token: string,
  { recipient, nowMs }: { readonly recipient: Uint8Array | undefined; readonly nowMs: number },
): Promise<string | undefined> {
  const payload = await verifiedPayload(login, token, nowMs);
  if (payload === undefined || !isFor(payload, recipient)) return undefined;
  return userIdIn(payload[login.userIdClaim]);
}

async function verifiedPayload(
  { keys, audiences }: UserLogin,
  token: string,
  nowMs: number,
): Promise<JWTPayload | undefined> {
  try {
    const { alg, kid } = decodeProtectedHeader(token);
    for (const { algorithm, kid: name, key } of keys) {
      if (algorithm !== alg || (kid !== undefined && name !== undefined && kid !== name)) continue;
      const verified = await jwtVerify(token, key, {
        algorithms: [algorithm],
        requiredClaims: ['exp'],
        currentDate: new Date(nowMs),
        ...(audiences.length === 0 ? {} : { audience: [...audiences] }),
      }).catch(() => undefined);
      if (verified !== undefined) return verified.payload;
    }
  } catch {
    // No JWT.
  }
  return undefined;
}

function isFor({ cnf }: JWTPayload, recipient: Uint8Array | undefined): boolean {
  if (cnf === undefined) return true;
  const { jkt } = (cnf ?? {}) as { jkt?: unknown };
  return recipient !== undefined && jkt === thumbprint(recipient);
}

/** SHA-256 of the JWK of a P-256 key, base64url (RFC 7638 §3). */
function thumbprint(point: Uint8Array): string {
  const bytes = Buffer.from(point);
  const [x, y] = [bytes.subarray(1, 33), bytes.subarray(33, 65)].map((part) => part.toString('base64url'));
  return hash('sha256', `{"crv":"P-256","kty":"EC","x":"${x}","y":"${y}"}`, 'base64url');
}
