import { requireOwnApp } from '../../domain/access/apps/require-own-app.ts';
import { deleteAllowlistEntry as remove } from '../../domain/wallets/allowlist/allowlist.ts';
import type { Handler } from '../../operation-context.ts';

export const deleteAllowlistEntry: Handler<'deleteAllowlistEntry'> = async ({ path, body }, context) => {
  requireOwnApp(context, path.app_id);
  await remove(context, body);
  return { message: 'Allowlist entry removed' };
};
