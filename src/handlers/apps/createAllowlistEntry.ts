import { createAllowlistEntry as add } from '../../domain/allowlist/allowlist.ts';
import { requireOwnApp } from '../../domain/apps/require-own-app.ts';
import type { Handler } from '../../services.ts';

export const createAllowlistEntry: Handler<'createAllowlistEntry'> = async ({ path, body }, context) => {
  requireOwnApp(context, path.app_id);
  return add(context, body);
};
