import { checkAppSettings } from '../../domain/access/apps/app-settings.ts';
import { updateApp } from '../../domain/access/apps/update-app.ts';
import { checkJwtAuthReachable } from '../../domain/wallets/tokens/verify-customer-token.ts';
import { appView } from '../app-view.ts';
import type { Handler } from '../control-plane.ts';

export const run: Handler<'configureApp'> = async ({ path, body }, context) => {
  const { clock, entropy, ids } = context;
  const nowMs = clock.now();
  const settings = body.settings === undefined ? undefined : checkAppSettings(body.settings, { ids, nowMs });
  if (settings !== undefined) await checkJwtAuthReachable(context, settings);
  const app = await context.changeApps((em) =>
    updateApp({ em, entropy, ids, nowMs }, path.app_id, { ...body, settings }),
  );
  return appView(app);
};
