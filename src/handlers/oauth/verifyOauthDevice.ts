import { verifyDevice } from '../../domain/wallets/oauth/verify-device.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'verifyOauthDevice'> = async ({ body }, context) => {
  await verifyDevice(context, body);
  return { success: true };
};
