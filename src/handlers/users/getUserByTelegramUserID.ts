import { findUserByAccount } from '../../domain/access/user-records/find-user.ts';
import { userView } from '../../domain/wallets/users/user-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getUserByTelegramUserID'> = async ({ body }, context) =>
  userView(await findUserByAccount(context, { type: 'telegram', subject: body.telegram_user_id }));
