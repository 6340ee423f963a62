import { findUserByAccount } from '../../domain/users/find-user.ts';
import { userView } from '../../domain/users/user-view.ts';
import type { Handler } from '../../services.ts';

export const getUserByTelegramUserID: Handler<'getUserByTelegramUserID'> = async ({ body }, context) =>
  userView(await findUserByAccount(context, { type: 'telegram', subject: body.telegram_user_id }));
