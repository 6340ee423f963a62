import { mergeCustomMetadata } from '../../domain/users/custom-metadata.ts';
import { userView } from '../../domain/users/user-view.ts';
import type { Handler } from '../../services.ts';

export const updateUserCustomMetadata: Handler<'updateUserCustomMetadata'> = async (
  { path, body },
  context,
) => userView(await mergeCustomMetadata(context, path.user_id, body.custom_metadata));
