import type { SqlEntityManager } from '@mikro-orm/sql';
import { readAppSettings } from '../../domain/access/apps/app-settings.ts';
import { findApp } from '../../domain/access/apps/find-app.ts';
import {
  type AccountKey,
  findUserByAccount,
  getUser,
  getUserByAccount,
  type UserContext,
} from '../../domain/access/user-records/find-user.ts';
import type { StoredUser } from '../../domain/access/user-records/user.entity.ts';
import { decideDevice, findDeviceCode, showUserCode } from '../../domain/wallets/oauth/device-codes.ts';
import type { OauthDeviceCode } from '../../domain/wallets/oauth/oauth.entity.ts';
import {
  identityClaims,
  issueIdentityToken,
  TOKEN_LIFETIME_SECONDS,
} from '../../domain/wallets/tokens/access-tokens.ts';
import { openSession } from '../../domain/wallets/tokens/log-in-with-code.ts';
import { normalizeEmail, normalizePhoneNumber } from '../../domain/wallets/users/linked-account-kinds.ts';
import { transferAccount } from '../../domain/wallets/users/linked-accounts.ts';
import { changeUserState } from '../../domain/wallets/users/user.ts';
import { userView } from '../../domain/wallets/users/user-view.ts';
import { ApiError, invalidField, notFound } from '../../errors.ts';
import type { Handler, OperatorHandler } from '../control-plane.ts';
import type { SandboxDeviceCode } from '../generated/schemas.ts';

export const configureUser: Handler<'configureUser'> = async ({ path, body }, context) => {
  const { clock, ids } = context;
  const state = {
    mfaMethods: body.mfa_methods,
    hasAcceptedTerms: body.has_accepted_terms,
    isGuest: body.is_guest,
    isFrozen: body.frozen,
  };
  const stored = await context.changeApps(async (em, notes) => {
    const app = await findApp(em, path.app_id);
    return changeUserState({ app, em, notes, ids, nowMs: clock.now() }, path.user_id, state);
  });
  const user = userView(stored);
  return {
    id: user.id,
    mfa_methods: user.mfa_methods.map(({ type }) => type),
    has_accepted_terms: user.has_accepted_terms,
    is_guest: user.is_guest,
    frozen: user.frozen_at !== undefined,
  };
};

export const signInUser: Handler<'signInUser'> = async ({ path, query }, context) => {
  const { ids, entropy, keyStore, login, prefix } = context;
  const nowMs = context.clock.now();
  return context.change(async (em, notes) => {
    const app = await findApp(em, query.app_id ?? context.appId);
    const inApp = { app, em, notes, ids, entropy, keyStore, nowMs, prefix };
    const stored = await findUserNamed(inApp, path.user_id);
    const user = userView(stored);
    const { id: userId, frozen_at_ms: frozenAtMs } = stored.row;
    if (frozenAtMs !== null) {
      throw new ApiError(
        'invalid_state',
        'the user is frozen; PUT /_sandbox/apps/{app_id}/users/{user_id} changes that',
      );
    }
    const { sessionId, token, refreshToken } = await openSession(inApp, userId);
    const { jwt_auth: jwtAuth } = readAppSettings(app.settings);
    const custom = stored.linkedAccounts.find(({ type }) => type === 'custom_auth');
    const isAccepted = jwtAuth?.verification_key === login().verificationKey;
    return {
      session_id: sessionId,
      app_id: app.id,
      user_id: user.id,
      access_token: token,
      refresh_token: refreshToken,
      identity_token: await issueIdentityToken(inApp, { userId, claims: identityClaims(user) }),
      custom_token:
        custom === undefined || !isAccepted
          ? null
          : await login().issue(custom.subject, {
              ...{ claim: jwtAuth.user_id_claim, audience: jwtAuth.audiences[0], nowMs },
            }),
      expires_at_ms: 1000 * (Math.floor(nowMs / 1000) + TOKEN_LIFETIME_SECONDS),
    };
  });
};

export const getSimulatedLogin: Handler<'getSimulatedLogin'> = async (_input, context) => {
  const { issuer, verificationKey, jwk } = context.login();
  const { x = '', y = '' } = await jwk();
  return {
    issuer,
    verification_key: verificationKey,
    keys: [{ kty: 'EC', crv: 'P-256', x, y, use: 'sig', alg: 'ES256' }],
  };
};

/** Finds a user by id, or by the email address, phone number or custom user id of a linked account. */
async function findUserNamed(context: UserContext, name: string): Promise<StoredUser> {
  const byId = await getUser(context, name);
  if (byId !== undefined) return byId;
  const number = normalizePhoneNumber(name);
  const accounts: AccountKey[] = [
    { type: 'email', subject: normalizeEmail(name) },
    { type: 'custom_auth', subject: name },
    ...(number === undefined ? [] : [{ type: 'phone', subject: number }]),
  ];
  for (const account of accounts) {
    const user = await getUserByAccount(context, account);
    if (user !== undefined) return user;
  }
  throw notFound('User');
}

export const getDeviceCode: Handler<'getDeviceCode'> = ({ path }, context) =>
  context.read(async (em) =>
    deviceCodeView(em, await findDeviceCode(em, path.user_code), context.clock.now()),
  );

export const decideDeviceCode: Handler<'decideDeviceCode'> = async ({ path, body }, context) => {
  const { action, email, user_id: userId } = body;
  if ((email === undefined) === (userId === undefined)) {
    throw invalidField('', 'expected either `user_id` or `email`');
  }
  const nowMs = context.clock.now();
  return context.change(async (em) => {
    const code = await findDeviceCode(em, path.user_code);
    const ofApp = { em, app: { id: code.appId }, nowMs };
    const account = { type: 'email', subject: normalizeEmail(email ?? '') };
    const id = userId ?? (await findUserByAccount(ofApp, account)).row.id;
    await decideDevice(ofApp, { userId: id, userCode: code.userCode, action });
    return deviceCodeView(em, await findDeviceCode(em, path.user_code), nowMs);
  });
};

export const takeOverUser: OperatorHandler<'takeOverUser'> = async (
  { path, body },
  { change, clock, ids, by },
) => {
  const nowMs = clock.now();
  const users = { fromUserId: body.from_user_id, toUserId: path.user_id };
  const { row, linkedAccounts } = await change((em, notes) =>
    transferAccount({ em, notes, ids, nowMs, by }, users),
  );
  return { id: row.id, app_id: row.app_id, linked_accounts: linkedAccounts.map(({ type }) => type) };
};

/** Returns a device code in the form of the control plane, without the code that only the device knows. */
async function deviceCodeView(
  em: SqlEntityManager,
  code: OauthDeviceCode,
  nowMs: number,
): Promise<SandboxDeviceCode> {
  const app = await findApp(em, code.appId);
  return {
    user_code: showUserCode(code.userCode),
    app_id: app.id,
    app_name: app.name,
    status: code.expiresAtMs <= nowMs && code.status !== 'redeemed' ? 'expired' : code.status,
    expires_at_ms: code.expiresAtMs,
  };
}
