import { hash } from 'node:crypto';
import { ApiError, invalidField } from '../../../errors.ts';
import type {
  AuthenticatePasswordlessRequest,
  PasswordlessAuthenticateResponse,
} from '../../../generated/schemas.ts';
import {
  type OperationContext,
  type PlanContext,
  type Planned,
  unwrapPlan,
} from '../../../ports/operation-context.ts';
import { readAppSettings } from '../../access/apps/app-settings.ts';
import { findApp } from '../../access/apps/find-app.ts';
import { isTestCode } from '../../access/apps/test-account-codes.ts';
import { type AccountKey, findUser, getLogin, lockUser } from '../../access/user-records/find-user.ts';
import { recordEvent } from '../../base/events/events.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import { readSafeguards } from '../../base/safeguards/safeguards.ts';
import type { Tables } from '../../tables.ts';
import { requireAllowlisted } from '../allowlist/allowlist.ts';
import { normalizeEmail, normalizePhoneNumber } from '../users/linked-account-kinds.ts';
import { createUser } from '../users/user.ts';
import { linkedAccountView, userView } from '../users/user-view.ts';
import { identityClaims, issueAccessToken, issueIdentityToken } from './access-tokens.ts';
import { UserSessionEntity } from './session.entity.ts';

// KYSELY: one update keeps the time of the first verification, by `coalesce`.

/**
 * Logs in the user of a test account and opens a session.
 *
 * @param planned the result of `findTestAccount`.
 * @throws ApiError invalid_credentials where test logins are blocked, for an account that cannot be used yet and for a
 * frozen user; allowlist_rejected; user_does_not_exist for an unknown user under `no-signup`.
 */
export async function logInWithCode(
  context: OperationContext,
  input: AuthenticatePasswordlessRequest,
  planned: Planned<AccountKey>,
): Promise<PasswordlessAuthenticateResponse> {
  const key = unwrapPlan(planned);
  const settings = readAppSettings((await findApp(context.em, context.app.id)).settings);
  const { block_test_logins: isBlocked } = await readSafeguards(context);
  const login = await getLogin(context, key);
  if (isBlocked || login?.waitsUntilMs !== undefined) throw new ApiError('invalid_credentials');
  const known = login?.userId;
  if (known === undefined && input.mode === 'no-signup') throw new ApiError('user_does_not_exist');
  await requireAllowlisted(context, [key, ...(await otherAccounts(context, known))]);
  const userId = known ?? (await signUp(context, key));
  const user = await verifyAccount(context, userId, key);
  const { token, refreshToken } = await openSession(context, userId);
  return {
    user,
    ...{ token, service_access_token: token, refresh_token: refreshToken },
    ...(settings.identity_tokens
      ? { identity_token: await issueIdentityToken(context, { userId, claims: identityClaims(user) }) }
      : {}),
    is_new_user: known === undefined,
  };
}

/**
 * Finds the test account whose one-time code the caller sent.
 *
 * CHOICE: the server sends no e-mail or text messages, so only test accounts have codes.
 *
 * @throws ApiError invalid_data, invalid_credentials
 */
export async function findTestAccount(
  { app, em, keyStore }: PlanContext,
  { email, phone_number: phoneNumber, code }: AuthenticatePasswordlessRequest,
): Promise<AccountKey> {
  if (email === undefined && phoneNumber === undefined) {
    throw invalidField('', 'expected `email` or `phone_number`');
  }
  const settings = readAppSettings((await findApp(em, app.id)).settings);
  const account = settings.test_accounts.find(
    (candidate) =>
      (email === undefined || normalizeEmail(candidate.email) === normalizeEmail(email)) &&
      (phoneNumber === undefined || isSameNumber(candidate.phone_number, phoneNumber)),
  );
  if (account === undefined || !(await isTestCode(keyStore, app.id, account, code))) {
    throw new ApiError('invalid_credentials');
  }
  return email === undefined
    ? { type: 'phone', subject: normalizePhoneNumber(account.phone_number) ?? account.phone_number }
    : { type: 'email', subject: normalizeEmail(account.email) };
}

function isSameNumber(known: string, given: string): boolean {
  return (normalizePhoneNumber(known) ?? known) === (normalizePhoneNumber(given) ?? given);
}

async function otherAccounts(context: OperationContext, userId: string | undefined): Promise<AccountKey[]> {
  return userId === undefined ? [] : [...(await findUser(context, userId)).linkedAccounts];
}

async function signUp(context: OperationContext, { type, subject }: AccountKey): Promise<string> {
  const account =
    type === 'email' ? ({ type, address: subject } as const) : ({ type: 'phone', number: subject } as const);
  return (await createUser(context, { linked_accounts: [account] })).row.id;
}

/** Updates the account's verification time and records the login event. */
async function verifyAccount(context: OperationContext, userId: string, { type, subject }: AccountKey) {
  await context.em
    .getKysely<Tables>()
    .updateTable('linked_accounts')
    .set((eb) => ({
      verified_at_ms: context.nowMs,
      first_verified_at_ms: eb.fn.coalesce('first_verified_at_ms', eb.val(context.nowMs)),
      latest_verified_at_ms: context.nowMs,
    }))
    .where('app_id', '=', context.app.id)
    .where('type', '=', type)
    .where('subject', '=', lookupKey(subject))
    .execute();
  const stored = await findUser(context, userId);
  const user = userView(stored);
  const account = stored.linkedAccounts.find((candidate) => candidate.type === type);
  if (account !== undefined) {
    await recordEvent(context, {
      appId: context.app.id,
      type: 'user.authenticated',
      payload: { user, account: linkedAccountView(account) },
    });
  }
  return user;
}

/**
 * Opens a session of a user, and issues its access token.
 *
 * CHOICE: a frozen user gets the same response as for a wrong code, because the specification has no other refusal of
 * a login.
 *
 * @throws ApiError invalid_credentials for a frozen user.
 */
export async function openSession(
  context: Parameters<typeof issueAccessToken>[0] & Pick<OperationContext, 'entropy'>,
  userId: string,
): Promise<{ readonly sessionId: string; readonly token: string; readonly refreshToken: string }> {
  const { isFrozen } = await lockUser(context, userId);
  if (isFrozen) throw new ApiError('invalid_credentials', 'the user is frozen');
  const sessionId = context.ids.uuid();
  const refreshToken = `rt_${Buffer.from(context.entropy.bytes(32)).toString('base64url')}`;
  context.em.create(UserSessionEntity, {
    id: sessionId,
    appId: context.app.id,
    userId,
    refreshTokenHash: hash('sha256', refreshToken),
    createdAtMs: context.nowMs,
    revokedAtMs: null,
  });
  await context.em.flush();
  const token = await issueAccessToken(context, { userId, sessionId });
  return { sessionId, token, refreshToken };
}
