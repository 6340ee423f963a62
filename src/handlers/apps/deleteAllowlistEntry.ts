import { requireOwnApp } from '../../domain/access/apps/require-own-app.ts';
import { deleteAllowlistEntry } from '../../domain/wallets/allowlist/allowlist.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'deleteAllowlistEntry'> = async ({ path, body }, context) => {
  requireOwnApp(context, path.app_id);
  await deleteAllowlistEntry(context, body);
  return { message: 'Allowlist entry removed' };
};
