import { replaceCustomMetadata } from '../../domain/wallets/users/custom-metadata.ts';
import { userView } from '../../domain/wallets/users/user-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'setUserCustomMetadata'> = async ({ path, body }, context) =>
  userView(await replaceCustomMetadata(context, path.user_id, body.custom_metadata));
