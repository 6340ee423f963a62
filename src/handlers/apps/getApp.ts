import { appSettingsView } from '../../domain/access/apps/app-settings-view.ts';
import { findApp } from '../../domain/access/apps/find-app.ts';
import { requireOwnApp } from '../../domain/access/apps/require-own-app.ts';
import { currentVerificationKey } from '../../domain/wallets/tokens/signing-keys.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getApp'> = async ({ path }, context) => {
  requireOwnApp(context, path.app_id);
  const app = await findApp(context.em, path.app_id);
  return appSettingsView(app, await currentVerificationKey(context, app.id));
};
