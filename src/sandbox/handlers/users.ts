import type { SqlEntityManager } from '@mikro-orm/sql';
import { findApp } from '../../domain/access/apps/find-app.ts';
import { findUserByAccount } from '../../domain/access/user-records/find-user.ts';
import { decideDevice, findDeviceCode, showUserCode } from '../../domain/wallets/oauth/device-codes.ts';
import type { OauthDeviceCode } from '../../domain/wallets/oauth/oauth.entity.ts';
import { normalizeEmail } from '../../domain/wallets/users/linked-account-kinds.ts';
import { transferAccount } from '../../domain/wallets/users/transfer-account.ts';
import { changeUserState } from '../../domain/wallets/users/user.ts';
import { userView } from '../../domain/wallets/users/user-view.ts';
import { invalidField } from '../../errors.ts';
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

/** The control plane's representation of a device code, without the code that only the device knows. */
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
