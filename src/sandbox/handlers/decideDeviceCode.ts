import { findUserByAccount } from '../../domain/access/user-records/find-user.ts';
import { findDeviceCode } from '../../domain/wallets/oauth/find-device-code.ts';
import { decideDevice } from '../../domain/wallets/oauth/verify-device.ts';
import { normalizeEmail } from '../../domain/wallets/users/linked-account-kinds.ts';
import { invalidField } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';
import { deviceCodeView } from '../device-code-view.ts';

export const run: Handler<'decideDeviceCode'> = async ({ path, body }, context) => {
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
