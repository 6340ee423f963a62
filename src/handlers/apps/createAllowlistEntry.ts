import { requireOwnApp } from '../../domain/access/apps/require-own-app.ts';
import { createAllowlistEntry } from '../../domain/wallets/allowlist/allowlist.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'createAllowlistEntry'> = async ({ path, body }, context) => {
  requireOwnApp(context, path.app_id);
  return createAllowlistEntry(context, body);
};
