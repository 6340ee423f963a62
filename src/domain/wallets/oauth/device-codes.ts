import { hash } from 'node:crypto';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { ApiError, invalidField, notFound } from '../../../errors.ts';
import type {
  DeviceAuthorizationResponse,
  DeviceVerifyAction,
  VerifyOauthDeviceRequest,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import type { Entropy } from '../../../ports/runtime.ts';
import { isUniqueViolation } from '../../../storage/database-errors.ts';
import { lockForUpdate, lockName, lockNames } from '../../../storage/locks.ts';
import { readAppSettings } from '../../access/apps/app-settings.ts';
import { findApp } from '../../access/apps/find-app.ts';
import { findUser, lockUser } from '../../access/user-records/find-user.ts';
import { inSavepoint } from '../../savepoint.ts';
import { isDeviceSession, isRevokedSession } from '../tokens/access-tokens.ts';
import { OauthGrantEntity } from '../tokens/session.entity.ts';
import {
  type OauthDeviceCode,
  OauthDeviceCodeEntity,
  OauthRefreshTokenEntity,
  OauthWrongCodeEntity,
} from './oauth.entity.ts';

// RFC 8628 section 6.1: consonants only, so that codes spell no words.
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
const USER_CODE_LENGTH = 8;
const SECRET_BYTES = 32;

/** Returns a random user code of eight letters, which have 34.5 bits of entropy. */
function drawUserCode(entropy: Entropy): string {
  let code = '';
  while (code.length < USER_CODE_LENGTH) {
    for (const byte of entropy.bytes(USER_CODE_LENGTH)) {
      // 240 is the largest multiple of 20 below 256. Skipping the bytes from 240 on makes every letter equally likely.
      if (byte < 240 && code.length < USER_CODE_LENGTH) code += LETTERS[byte % LETTERS.length];
    }
  }
  return code;
}

/**
 * Converts a code from the form in which people type it to the stored form: upper case, without hyphens and other
 * punctuation (RFC 8628 section 6.1).
 */
function normalizeUserCode(text: string): string {
  return text
    .slice(0, 64)
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]/g, '');
}

/** Formats a code for display: `WDJBMJHT` becomes `WDJB-MJHT`. */
export function showUserCode(code: string): string {
  return `${code.slice(0, 4)}-${code.slice(4)}`;
}

/** Returns 256 random bits in base64url. */
export function drawSecret(entropy: Entropy): string {
  return Buffer.from(entropy.bytes(SECRET_BYTES)).toString('base64url');
}

/** Returns the stored form of a secret: hex SHA-256. */
export function hashOfSecret(secret: string): string {
  return hash('sha256', secret);
}

/** CHOICE: codes live for 15 minutes, long enough to log in on another device. */
const LIFETIME_SECONDS = 900;

/**
 * CHOICE: the maximum number of undecided codes of one app at a time. Each undecided code makes it easier to guess
 * one.
 */
const MAX_PENDING = 1_000;

/**
 * CHOICE: clients without a secret share half of `MAX_PENDING`, and those behind one network address share the second
 * number. Anyone can be such a client. They must not use up the codes of clients with a secret, and one network must
 * not use up the codes of other networks.
 */
const MAX_PUBLIC = MAX_PENDING / 2;
const MAX_PUBLIC_OF_NETWORK = 25;

const MAX_DRAWS = 5;

/**
 * Creates the codes of a device that wants a user's tokens. Source: RFC 8628 section 3.2.
 *
 * @throws ApiError feature_not_enabled without a verification page; too_many_requests for an app with too many
 * undecided codes.
 */
export async function authorizeDevice(context: OperationContext): Promise<DeviceAuthorizationResponse> {
  const { settings: stored } = await findApp(context.em, context.app.id);
  const settings = readAppSettings(stored).device_flow;
  const page = settings.verification_uri ?? ownPage(context);
  if (page === undefined) {
    throw new ApiError('feature_not_enabled', 'the app has no `device_flow.verification_uri`');
  }
  await requireRoom(context);
  const deviceCode = drawSecret(context.entropy);
  const userCode = await storeCode(context, hashOfSecret(deviceCode), settings.interval_seconds);
  const complete = new URL(page);
  complete.searchParams.set('user_code', showUserCode(userCode));
  return {
    device_code: deviceCode,
    user_code: showUserCode(userCode),
    verification_uri: page,
    verification_uri_complete: complete.href,
    expires_in: LIFETIME_SECONDS,
    interval: settings.interval_seconds,
  };
}

function ownPage({ devicePage, proof }: OperationContext): string | undefined {
  return devicePage === undefined ? undefined : proof.urlOf(devicePage);
}

/**
 * Refuses another code if too many codes are undecided.
 *
 * INVARIANT: no other request counts or stores codes until this request has stored its code.
 *
 * @throws ApiError too_many_requests
 */
async function requireRoom({ app, em, nowMs, proof }: OperationContext): Promise<void> {
  await lockName(em, 'device codes', `device-codes:${app.id}`);
  const waiting = { appId: app.id, status: 'pending', expiresAtMs: { $gt: nowMs } } as const;
  if ((await em.count(OauthDeviceCodeEntity, waiting)) >= MAX_PENDING) {
    throw new ApiError('too_many_requests', `the app has ${MAX_PENDING} undecided device codes`);
  }
  const { publicClientNetwork: publicNetwork } = proof;
  if (publicNetwork === undefined) return;
  if ((await em.count(OauthDeviceCodeEntity, { ...waiting, publicNetwork: { $ne: null } })) >= MAX_PUBLIC) {
    const message = `clients without a secret have ${MAX_PUBLIC} undecided device codes of the app`;
    throw new ApiError('too_many_requests', message);
  }
  if ((await em.count(OauthDeviceCodeEntity, { ...waiting, publicNetwork })) >= MAX_PUBLIC_OF_NETWORK) {
    const message = `clients without a secret at this network address have ${MAX_PUBLIC_OF_NETWORK} undecided device codes`;
    throw new ApiError('too_many_requests', message);
  }
}

/** Stores the code under a new, unique user code, which it returns. */
async function storeCode(context: OperationContext, id: string, intervalSeconds: number): Promise<string> {
  const { app, nowMs } = context;
  for (let draw = 1; ; draw += 1) {
    const userCode = drawUserCode(context.entropy);
    try {
      await inSavepoint(context, async (em) => {
        em.create(OauthDeviceCodeEntity, {
          id,
          appId: app.id,
          userCode,
          status: 'pending',
          publicNetwork: context.proof.publicClientNetwork ?? null,
          userId: null,
          intervalSeconds,
          polledAtMs: null,
          createdAtMs: nowMs,
          expiresAtMs: nowMs + LIFETIME_SECONDS * 1000,
        });
      });
      return userCode;
    } catch (error) {
      if (draw === MAX_DRAWS || !isUniqueViolation(error)) throw error;
    }
  }
}

/**
 * Finds a device code of any app by its user code, for operators.
 *
 * @throws ApiError not_found
 */
export async function findDeviceCode(em: SqlEntityManager, userCode: string): Promise<OauthDeviceCode> {
  const code = await em.findOne(OauthDeviceCodeEntity, { userCode: normalizeUserCode(userCode) });
  if (code === null) throw notFound('User code');
  return code;
}

/**
 * CHOICE: the maximum number of unknown codes from one user in 15 minutes, and from all users of an app in a minute.
 */
const MAX_WRONG_OF_USER = { count: 5, withinMs: 15 * 60_000 };
const MAX_WRONG_OF_APP = { count: 60, withinMs: 60_000 };

type DecisionContext = Pick<OperationContext, 'app' | 'em' | 'nowMs'>;

/**
 * Records the decision of the user whose access token the request carries.
 *
 * CHOICE: the token of a device cannot approve devices, so a lost device cannot approve further devices.
 *
 * @throws ApiError missing_or_invalid_token, invalid_data, not_found, invalid_state; too_many_requests after too many
 * unknown codes.
 */
export async function verifyDevice(
  context: OperationContext,
  decision: VerifyOauthDeviceRequest | undefined,
): Promise<void> {
  const { userId, sessionId } = context.proof;
  if (userId === undefined || sessionId === undefined) {
    throw new ApiError('missing_or_invalid_token', 'expected the access token of a user');
  }
  if (await isDeviceSession(context, sessionId)) {
    throw new ApiError('missing_or_invalid_token', 'the access token of a device cannot decide on devices');
  }
  if (await isRevokedSession(context, sessionId)) {
    throw new ApiError('missing_or_invalid_token', 'the session of the access token was revoked');
  }
  if (decision === undefined) throw invalidField('', 'expected `user_code` and `action`');
  await requireFewWrong(context, userId);
  const isKnown = await decide(context, { userId, ...decision });
  if (isKnown) return;
  context.em.create(OauthWrongCodeEntity, {
    id: context.ids.cuid2(),
    appId: context.app.id,
    userId,
    atMs: context.machine.now(),
  });
  throw unknownCode({ keepsChanges: true });
}

/**
 * Records the decision of a user without any proof. For the sandbox's control plane.
 *
 * @throws ApiError not_found, invalid_state
 */
export async function decideDevice(
  context: DecisionContext,
  { userId, userCode, action }: { userId: string; userCode: string; action: DeviceVerifyAction },
): Promise<void> {
  const { row } = await findUser(context, userId);
  const isKnown = await decide(context, { userId: row.id, user_code: userCode, action });
  if (!isKnown) throw unknownCode();
}

/**
 * Records a decision about a code. Returns false if the app has no such code.
 *
 * @throws ApiError invalid_state for a code that has expired or was decided, and for a frozen user.
 */
async function decide(
  context: DecisionContext,
  { userId, user_code: typed, action }: { readonly userId: string } & VerifyOauthDeviceRequest,
): Promise<boolean> {
  const { app, em, nowMs } = context;
  const userCode = normalizeUserCode(typed);
  const code = await em.findOne(OauthDeviceCodeEntity, { appId: app.id, userCode }, lockForUpdate);
  if (code === null) return false;
  if (code.expiresAtMs <= nowMs) throw new ApiError('invalid_state', 'the user code has expired');
  if (code.status !== 'pending') throw new ApiError('invalid_state', 'the user code was already decided');
  const { isFrozen } = await lockUser(context, userId);
  if (isFrozen && action === 'approve') throw new ApiError('invalid_state', 'the user is frozen');
  code.status = action === 'approve' ? 'approved' : 'denied';
  code.userId = userId;
  await em.flush();
  return true;
}

/**
 * Limits guesses, because user codes are short (RFC 8628 section 5.1).
 *
 * @throws ApiError too_many_requests
 */
async function requireFewWrong({ app, em, machine }: OperationContext, userId: string): Promise<void> {
  // INVARIANT: an attempt is counted before the app's next attempt is checked.
  await lockNames(em, 'device guesses', [`device-guesses:${app.id}`]);
  const nowMs = machine.now();
  const limits = [
    { of: { userId }, ...MAX_WRONG_OF_USER },
    { of: { appId: app.id }, ...MAX_WRONG_OF_APP },
  ];
  for (const { of, count, withinMs } of limits) {
    const wrong = await em.count(OauthWrongCodeEntity, { ...of, atMs: { $gt: nowMs - withinMs } });
    if (wrong < count) continue;
    throw new ApiError('too_many_requests', 'too many unknown user codes', {
      headers: { 'retry-after': String(withinMs / 1000) },
    });
  }
}

function unknownCode(detail?: { keepsChanges: boolean }): ApiError {
  return new ApiError('not_found', notFound('User code').message, detail);
}

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;

/**
 * Expired codes are kept for an hour, so that devices get the error for an expired code. After that, a code is
 * unknown.
 */
const KEEP_CODES_MS = HOUR_MS;

/** CHOICE: used refresh tokens are kept for 30 days, so that their reuse is noticed. After that, a token is unknown. */
const KEEP_USED_MS = 30 * DAY_MS;

/** Longer than any grant can exist, which is at most 3,650 days by the app settings. */
const KEEP_GRANTS_MS = 3_660 * DAY_MS;

/** Longer than the longest window in which wrong codes count. */
const KEEP_WRONG_MS = HOUR_MS;

/**
 * Deletes device codes, tokens and grants that can no longer be used, and wrong codes that no longer count. Returns how
 * many rows it deleted.
 */
export async function dropExpiredOauth(
  em: SqlEntityManager,
  { nowMs, machineMs }: { readonly nowMs: number; readonly machineMs: number },
): Promise<number> {
  const codes = await em.nativeDelete(OauthDeviceCodeEntity, {
    expiresAtMs: { $lte: nowMs - KEEP_CODES_MS },
  });
  const tokens = await em.nativeDelete(OauthRefreshTokenEntity, {
    usedAtMs: { $lte: nowMs - KEEP_USED_MS },
  });
  const grants = await em.nativeDelete(OauthGrantEntity, { lastUsedAtMs: { $lte: nowMs - KEEP_GRANTS_MS } });
  const wrong = await em.nativeDelete(OauthWrongCodeEntity, { atMs: { $lte: machineMs - KEEP_WRONG_MS } });
  return codes + tokens + grants + wrong;
}
