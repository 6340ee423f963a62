import { createPublicKey, type KeyObject } from 'node:crypto';
import { LockMode } from '@mikro-orm/core';
import { decodeJwt, decodeProtectedHeader, errors, jwtVerify } from 'jose';
import { LRUCache } from 'lru-cache';
import { ApiError } from '../../../errors.ts';
import type { AppJwk, LinkedAccount, User } from '../../../generated/schemas.ts';
import type { OperationContext, Services } from '../../../ports/operation-context.ts';
import type { UserTokens } from '../../../ports/requests.ts';
import { isUniqueViolation } from '../../../storage/database-errors.ts';
import type { Orm } from '../../../storage/open-database.ts';
import { getUser } from '../../access/user-records/find-user.ts';
import { signingKeyBinding } from '../../base/sealed-keys/sealed-keys.ts';
import { prepareQuery } from '../../prepared-query.ts';
import { inSavepoint } from '../../savepoint.ts';
import {
  AppSigningKeyEntity,
  OauthGrantEntity,
  type StoredSigningKey,
  UserSessionEntity,
} from './session.entity.ts';

type SigningKeyContext = Pick<OperationContext, 'em' | 'ids' | 'notes' | 'keyStore' | 'nowMs'>;

/**
 * Lists an app's public keys for tokens as a JWKS, newest first. Retired keys stay in the set, because clients cache
 * it.
 */
export async function listSigningKeys(context: SigningKeyContext, appId: string): Promise<AppJwk[]> {
  await ensureSigningKey(context, appId);
  const keys = await context.em.find(
    AppSigningKeyEntity,
    { appId },
    { orderBy: { createdAtMs: 'desc', id: 'desc' } },
  );
  return keys.map((key) => toJwk(key.id, publicKeyOf(key.publicKey)));
}

/** Returns the SubjectPublicKeyInfo PEM of the current signing key. */
export async function currentVerificationKey(context: SigningKeyContext, appId: string): Promise<string> {
  const key = await ensureSigningKey(context, appId);
  return publicKeyOf(key.publicKey).export({ format: 'pem', type: 'spki' }).toString();
}

/** Creates a new key, with which the app's tokens are signed from now on. */
export async function rotateSigningKey(context: SigningKeyContext, appId: string): Promise<void> {
  const current = await getCurrentKey(context, appId);
  if (current !== null) {
    current.retiredAtMs = context.nowMs;
    await context.em.flush();
  }
  await ensureSigningKey(context, appId);
}

/** Signs claims with the app's current key. Source: RFC 7515 §3.1, compact serialization; RFC 7518 §3.4, ES256. */
async function signClaims(
  context: SigningKeyContext,
  appId: string,
  claims: Readonly<Record<string, string | number>>,
): Promise<string> {
  const key = await ensureSigningKey(context, appId);
  const head = { alg: 'ES256', typ: 'JWT', kid: key.id };
  // base64url(header) || "." || base64url(claims) || "." || base64url(signature)
  const signed = `${base64UrlJson(head)}.${base64UrlJson(claims)}`;
  const binding = signingKeyBinding({ id: key.id, app_id: appId });
  const signature = await context.keyStore.signToken(key, binding, signed);
  return `${signed}.${Buffer.from(signature).toString('base64url')}`;
}

function base64UrlJson(value: object): string {
  return Buffer.from(JSON.stringify(value), 'utf8').toString('base64url');
}

// HOT: runs for every request with a user token. The entity manager would take several times the CPU of this read
// (bench `sqlite`, `postgres`).
const selectPublicKey = prepareQuery<{ id: string; appId: string }, { public_key: string }>(
  (database, { id, appId }) =>
    database
      .selectFrom('app_signing_keys')
      .select('public_key')
      .where('id', '=', id)
      .where('app_id', '=', appId),
);

/** Returns the public key with this `kid` under which the app's tokens were signed; undefined if there is none. */
async function getVerificationKey(
  { em }: Pick<SigningKeyContext, 'em'>,
  { appId, kid }: { readonly appId: string; readonly kid: string },
): Promise<KeyObject | undefined> {
  const {
    rows: [key],
  } = await selectPublicKey(em, { id: kid, appId });
  return key && publicKeyOf(key.public_key);
}

// INVARIANT: a unique index allows only one current key, even if two requests create the first key at the same time.
async function ensureSigningKey(context: SigningKeyContext, appId: string): Promise<StoredSigningKey> {
  const current = await getCurrentKey(context, appId);
  if (current !== null) return current;
  const id = context.ids.cuid2();
  const { sealed, publicKey } = await context.keyStore.createTokenKey(
    signingKeyBinding({ id, app_id: appId }),
  );
  try {
    await inSavepoint(context, async (em) => {
      em.create(AppSigningKeyEntity, {
        id,
        appId,
        publicKey,
        sealedSecret: Buffer.from(sealed.sealedSecret),
        wrappedDataKey: Buffer.from(sealed.wrappedDataKey),
        masterKeyId: sealed.masterKeyId,
        createdAtMs: context.nowMs,
        retiredAtMs: null,
      });
    });
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
  }
  const made = await getCurrentKey(context, appId);
  if (made === null) throw new Error(`app ${appId} has no signing key after one was made`);
  return made;
}

function getCurrentKey({ em }: SigningKeyContext, appId: string): Promise<StoredSigningKey | null> {
  return em.findOne(AppSigningKeyEntity, { appId, retiredAtMs: null });
}

/**
 * Caches parsed keys by their text. Verification is faster with the same key object, because the library caches data
 * for it.
 */
const publicKeys = new LRUCache<string, KeyObject>({ max: 1000 });

function publicKeyOf(spki: string): KeyObject {
  const known = publicKeys.get(spki);
  if (known !== undefined) return known;
  const made = createPublicKey({ key: Buffer.from(spki, 'base64'), format: 'der', type: 'spki' });
  publicKeys.set(spki, made);
  return made;
}

function toJwk(kid: string, key: KeyObject): AppJwk {
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  return { kty: 'EC', crv: 'P-256', x, y, kid, use: 'sig', alg: 'ES256' };
}

export const TOKEN_LIFETIME_SECONDS = 3600;

/**
 * Returns the `iss` of the service's tokens.
 *
 * CHOICE: it is the wire prefix with `.io`, because branded clients expect that.
 */
function tokenIssuer(prefix: string): string {
  return `${prefix}.io`;
}

/** Replaces the prefix `did:service:` of a user id by that of this server's brand. */
function subjectOf(userId: string, prefix: string): string {
  return userId.replace(/^did:service:/, `did:${prefix}:`);
}

/** Returns the stored user id for a token's `sub`. */
function userIdOf(subject: string, prefix: string): string {
  const start = `did:${prefix}:`;
  return subject.startsWith(start) ? `did:service:${subject.slice(start.length)}` : subject;
}

type TokenContext = Pick<OperationContext, 'app' | 'em' | 'ids' | 'notes' | 'keyStore' | 'nowMs' | 'prefix'>;

/**
 * Issues an access token for one session of a user in the context's app. Claims: `sid`, `sub`, `iss`, `aud`, `iat`, and
 * `exp` an hour later. Source: RFC 7519; RFC 7518 section 3.4, ES256.
 */
export function issueAccessToken(
  context: TokenContext,
  { userId, sessionId }: { readonly userId: string; readonly sessionId: string },
): Promise<string> {
  return issue(context, userId, { sid: sessionId });
}

/** Issues an identity token with the claims of `identityClaims`. */
export function issueIdentityToken(
  context: TokenContext,
  { userId, claims }: { readonly userId: string; readonly claims: Readonly<Record<string, string>> },
): Promise<string> {
  return issue(context, userId, claims);
}

function issue(
  context: TokenContext,
  userId: string,
  claims: Readonly<Record<string, string>>,
): Promise<string> {
  const issuedAtSeconds = Math.floor(context.nowMs / 1000);
  return signClaims(context, context.app.id, {
    ...claims,
    iss: tokenIssuer(context.prefix),
    aud: context.app.id,
    sub: subjectOf(userId, context.prefix),
    iat: issuedAtSeconds,
    exp: issuedAtSeconds + TOKEN_LIFETIME_SECONDS,
  });
}

/** Maps the short name of each member of an account in a claim to the member's name in the linked account. */
type Members = Readonly<Record<string, string>>;

const withName = { subject: 'subject', email: 'email', name: 'name' };
const withUsername = { subject: 'subject', username: 'username' };

const membersOf: Readonly<Record<string, Members>> = {
  email: { address: 'address' },
  phone: { phone_number: 'phoneNumber' },
  wallet: {
    address: 'address',
    chain_type: 'chain_type',
    wallet_client_type: 'wallet_client_type',
    id: 'id',
  },
  smart_wallet: { address: 'address', smart_wallet_type: 'smart_wallet_type' },
  farcaster: { fid: 'fid', username: 'username', oa: 'owner_address' },
  google_oauth: withName,
  line_oauth: withName,
  linkedin_oauth: withName,
  apple_oauth: { subject: 'subject', email: 'email' },
  spotify_oauth: withName,
  twitter_oauth: { subject: 'subject', username: 'username', name: 'name', pfp: 'profile_picture_url' },
  discord_oauth: withUsername,
  github_oauth: withUsername,
  instagram_oauth: withUsername,
  tiktok_oauth: withUsername,
  twitch_oauth: withUsername,
  custom_auth: { custom_user_id: 'custom_user_id' },
  telegram: { telegram_user_id: 'telegram_user_id', username: 'username' },
  passkey: { credential_id: 'credential_id' },
  cross_app: {
    subject: 'subject',
    provider_app_id: 'provider_app_id',
    embedded_wallets: 'embedded_wallets',
    smart_wallets: 'smart_wallets',
  },
};

/**
 * Returns the claims of a user's identity token:
 * - `cr`: the creation time as a string of Unix seconds;
 * - `guest`: `t` for a guest;
 * - `linked_accounts` and `custom_metadata`: JSON strings.
 */
export function identityClaims(user: User): Record<string, string> {
  return {
    cr: String(user.created_at),
    ...(user.is_guest ? { guest: 't' } : {}),
    linked_accounts: JSON.stringify(user.linked_accounts.map(compactAccount)),
    ...(user.custom_metadata === undefined ? {} : { custom_metadata: JSON.stringify(user.custom_metadata) }),
  };
}

// Tokens are sent in headers, so accounts are reduced to their identifying members. `lv` is the time of the last
// verification.
function compactAccount(account: LinkedAccount): Record<string, unknown> {
  const fields = new Map<string, unknown>(Object.entries(account));
  const members = Object.entries(membersOf[account.type] ?? {}).flatMap(
    ([short, long]): [string, unknown][] => {
      const value = fields.get(long);
      return value === undefined || value === null ? [] : [[short, value]];
    },
  );
  return { type: account.type, ...Object.fromEntries(members), lv: account.latest_verified_at };
}

interface UserSession {
  readonly userId: string;
  readonly sessionId: string;
  /** Whether the user is frozen. */
  readonly isFrozen: boolean;
}

type VerifyContext = Pick<OperationContext, 'app' | 'em' | 'nowMs' | 'prefix'>;

/**
 * Returns the user and the session of a valid access token of the app. Returns undefined when the token is malformed,
 * expired, for another app or not an access token, or when the user no longer exists. Does not check whether the
 * session was revoked.
 */
export async function verifyAccessToken(
  context: VerifyContext,
  token: string,
): Promise<UserSession | undefined> {
  const kid = kidOf(token);
  if (kid === undefined) return undefined;
  const key = await getVerificationKey(context, { appId: context.app.id, kid });
  if (key === undefined) return undefined;
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: ['ES256'],
      typ: 'JWT',
      issuer: tokenIssuer(context.prefix),
      audience: context.app.id,
      // Identity tokens are signed with the same key, but have no `sid`.
      requiredClaims: ['sub', 'sid', 'exp'],
      currentDate: new Date(context.nowMs),
    });
    const userId = userIdOf(payload.sub ?? '', context.prefix);
    const user = await getUser(context, userId);
    if (user === undefined) return undefined;
    return { userId, sessionId: String(payload.sid), isFrozen: user.row.frozen_at_ms !== null };
  } catch (error) {
    if (error instanceof errors.JOSEError) return undefined;
    throw error;
  }
}

/** Returns whether a token names this service as its issuer. If so, only `verifyAccessToken` may accept it. */
export function claimsToBeOurs(token: string, prefix: string): boolean {
  try {
    return decodeJwt(token).iss === tokenIssuer(prefix);
  } catch {
    return false;
  }
}

/** Returns a verifier of user tokens that uses the stored signing keys. */
export function createUserTokens(orm: Orm, { prefix }: Pick<Services, 'prefix'>): UserTokens {
  return {
    async verify(token, { appId, nowMs, isChange }) {
      const context = { em: orm.em.fork(), app: { id: appId }, nowMs, prefix };
      const session = await verifyAccessToken(context, token);
      if (session !== undefined && isChange) await requireMayChange(context, session);
      return session;
    },
  };
}

/**
 * Refuses changes by a user who was frozen, or in a session that was revoked.
 *
 * CHOICE: reads stay allowed until the access token expires. Changes are refused, because cards need no signature to
 * spend, to show their numbers or to be issued.
 *
 * @throws ApiError missing_or_invalid_token
 */
async function requireMayChange(context: VerifyContext, { sessionId, isFrozen }: UserSession): Promise<void> {
  if (isFrozen) {
    throw new ApiError('missing_or_invalid_token', 'the user of the access token is frozen');
  }
  if (await isRevoked(context, sessionId)) {
    throw new ApiError('missing_or_invalid_token', 'the session of the access token was revoked');
  }
}

// The form of a signing key's id. The header is not verified yet, so its `kid` can be any JSON value.
const KID = /^[a-z0-9]{1,64}$/;

function kidOf(token: string): string | undefined {
  try {
    const kid: unknown = decodeProtectedHeader(token).kid;
    return typeof kid === 'string' && KID.test(kid) ? kid : undefined;
  } catch {
    return undefined;
  }
}

type SessionContext = Pick<OperationContext, 'app' | 'em'>;

/** Returns whether a session belongs to a device rather than to an ordinary login. */
export async function isDeviceSession({ app, em }: SessionContext, sessionId: string): Promise<boolean> {
  return (await em.count(OauthGrantEntity, { id: sessionId, appId: app.id })) > 0;
}

/**
 * Returns whether a session was revoked. The session cannot be revoked until the transaction ends, so that nothing that
 * is created for it outlives it.
 */
export async function isRevokedSession(context: SessionContext, sessionId: string): Promise<boolean> {
  return isRevoked(context, sessionId, { lockMode: LockMode.PESSIMISTIC_READ, refresh: true });
}

async function isRevoked({ app, em }: SessionContext, sessionId: string, lock = {}): Promise<boolean> {
  const where = { id: sessionId, appId: app.id };
  const session =
    (await em.findOne(OauthGrantEntity, where, lock)) ?? (await em.findOne(UserSessionEntity, where, lock));
  return session !== null && session.revokedAtMs !== null;
}
