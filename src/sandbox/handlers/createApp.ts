import { checkAppSettings } from '../../domain/access/apps/app-settings.ts';
import { createApp } from '../../domain/access/apps/create-app.ts';
import { sealTestCodes } from '../../domain/access/apps/test-accounts.ts';
import { checkJwtAuthReachable } from '../../domain/wallets/tokens/verify-customer-token.ts';
import { appView } from '../app-view.ts';
import type { Handler } from '../control-plane.ts';

export const run: Handler<'createApp'> = async ({ body }, context) => {
  const { clock, entropy, ids, vault } = context;
  const nowMs = clock.now();
  const given = body.settings === undefined ? undefined : checkAppSettings(body.settings, { ids, nowMs });
  if (given !== undefined) await checkJwtAuthReachable(context, given);
  const id = body.id ?? ids.cuid();
  const settings = given && (await sealTestCodes(vault, id, given));
  const { app, secret } = await context.changeApps((em) =>
    createApp({ em, entropy, ids, nowMs }, { ...body, id, settings }),
  );
  return { ...appView(app), secret };
};
