import { appSettingsView } from '../../domain/apps/app-settings-view.ts';
import { findApp } from '../../domain/apps/find-app.ts';
import { requireOwnApp } from '../../domain/apps/require-own-app.ts';
import { currentVerificationKey } from '../../domain/tokens/signing-keys.ts';
import type { Handler } from '../../services.ts';

export const getApp: Handler<'getApp'> = async ({ path }, context) => {
  requireOwnApp(context, path.app_id);
  const app = await findApp(context.em, path.app_id);
  return appSettingsView(app, await currentVerificationKey(context, app.id));
};
