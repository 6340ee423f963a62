import { findApp } from '../../domain/apps/find-app.ts';
import { listSigningKeys } from '../../domain/tokens/signing-keys.ts';
import type { Handler } from '../../services.ts';

export const getAppJwks: Handler<'getAppJwks'> = async ({ path }, context) => {
  const app = await findApp(context.em, path.app_id);
  return { keys: await listSigningKeys(context, app.id) };
};
