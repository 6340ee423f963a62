import { requireOwnApp } from '../../domain/access/apps/require-own-app.ts';
import { listAllowlistEntries } from '../../domain/wallets/allowlist/allowlist.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listAllowlistEntries'> = async ({ path }, context) => {
  requireOwnApp(context, path.app_id);
  return listAllowlistEntries(context);
};
