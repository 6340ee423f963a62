import { authorizeDevice } from '../../domain/wallets/oauth/authorize-device.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'authorizeOauthDevice'> = (_input, context) => authorizeDevice(context);
