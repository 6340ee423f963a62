import { ApiError, invalidField, notFound } from '../../../errors.ts';
import type { DeviceVerifyAction, VerifyOauthDeviceRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { lockForUpdate, lockNames } from '../../../storage/locks.ts';
import { findUser, lockUser } from '../../access/user-records/find-user.ts';
import { isDeviceSession, isRevokedSession } from '../tokens/find-session.ts';
import { normalizeUserCode } from './codes.ts';
import { OauthDeviceCodeEntity } from './oauth-device-code.entity.ts';
import { OauthWrongCodeEntity } from './oauth-wrong-code.entity.ts';

/** CHOICE: unknown codes of one user in a quarter of an hour, and of all users of an app in a minute. */
const MAX_WRONG_OF_USER = { count: 5, withinMs: 15 * 60_000 };
const MAX_WRONG_OF_APP = { count: 60, withinMs: 60_000 };

type DecisionContext = Pick<OperationContext, 'app' | 'em' | 'nowMs'>;

/**
 * Records the decision of the user whose access token the request carries.
 *
 * CHOICE: the token of a device cannot approve devices, so a lost device cannot make itself companions.
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
 * Records the decision of a user, who need not prove anything: for the sandbox's control plane.
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

/** Returns false if the app has no such code. */
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

/** RFC 8628 section 5.1: user codes are short, so guesses are limited. */
async function requireFewWrong({ app, em, machine }: OperationContext, userId: string): Promise<void> {
  // INVARIANT: an attempt is counted before the next one of the app is judged.
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
