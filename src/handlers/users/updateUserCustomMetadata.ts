import { mergeCustomMetadata } from '../../domain/wallets/users/custom-metadata.ts';
import { userView } from '../../domain/wallets/users/user-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'updateUserCustomMetadata'> = async ({ path, body }, context) =>
  userView(await mergeCustomMetadata(context, path.user_id, body.custom_metadata));
