import { requireOwnApp } from '../../domain/access/apps/require-own-app.ts';
import { createAllowlistEntry as add } from '../../domain/wallets/allowlist/allowlist.ts';
import type { Handler } from '../../operation-context.ts';

export const createAllowlistEntry: Handler<'createAllowlistEntry'> = async ({ path, body }, context) => {
  requireOwnApp(context, path.app_id);
  return add(context, body);
};
