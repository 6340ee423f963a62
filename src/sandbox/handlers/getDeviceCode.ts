import { findDeviceCode } from '../../domain/wallets/oauth/find-device-code.ts';
import type { Handler } from '../control-plane.ts';
import { deviceCodeView } from '../device-code-view.ts';

export const run: Handler<'getDeviceCode'> = ({ path }, context) =>
  context.read(async (em) =>
    deviceCodeView(em, await findDeviceCode(em, path.user_code), context.clock.now()),
  );
