import { findApp } from '../../domain/access/apps/find-app.ts';
import { listSigningKeys } from '../../domain/wallets/tokens/signing-keys.ts';
import type { OpenHandler } from '../../operation-context.ts';

export const run: OpenHandler<'getAppJwks'> = async ({ path }, context) => {
  const app = await findApp(context.em, path.app_id);
  return { keys: await listSigningKeys(context, app.id) };
};
