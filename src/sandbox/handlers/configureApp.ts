import { checkAppSettings } from '../../domain/access/apps/app-settings.ts';
import { sealTestCodes } from '../../domain/access/apps/test-accounts.ts';
import { updateApp } from '../../domain/access/apps/update-app.ts';
import { checkJwtAuthReachable } from '../../domain/wallets/tokens/verify-customer-token.ts';
import { appView } from '../app-view.ts';
import type { Handler } from '../control-plane.ts';

export const run: Handler<'configureApp'> = async ({ path, body }, context) => {
  const { clock, entropy, ids, vault } = context;
  const nowMs = clock.now();
  const given = body.settings === undefined ? undefined : checkAppSettings(body.settings, { ids, nowMs });
  if (given !== undefined) await checkJwtAuthReachable(context, given);
  const settings = given && (await sealTestCodes(vault, path.app_id, given));
  const app = await context.changeApps((em) =>
    updateApp({ em, entropy, ids, nowMs }, path.app_id, { ...body, settings }),
  );
  return appView(app);
};
