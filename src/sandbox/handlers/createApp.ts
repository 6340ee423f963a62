import { checkAppSettings } from '../../domain/access/apps/app-settings.ts';
import { createApp } from '../../domain/access/apps/create-app.ts';
import { checkJwtAuthReachable } from '../../domain/wallets/tokens/verify-customer-token.ts';
import { appView } from '../app-view.ts';
import type { Handler } from '../control-plane.ts';

export const run: Handler<'createApp'> = async ({ body }, context) => {
  const { clock, entropy, ids } = context;
  const nowMs = clock.now();
  const settings = body.settings === undefined ? undefined : checkAppSettings(body.settings, { ids, nowMs });
  if (settings !== undefined) await checkJwtAuthReachable(context, settings);
  const { app, secret } = await context.changeApps((em) =>
    createApp({ em, entropy, ids, nowMs }, { ...body, settings }),
  );
  return { ...appView(app), secret };
};
