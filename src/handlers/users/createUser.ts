import { createUser as make } from '../../domain/users/create-user.ts';
import { userView } from '../../domain/users/user-view.ts';
import type { Handler } from '../../services.ts';

export const createUser: Handler<'createUser'> = async ({ body }, context) =>
  userView(await make(context, body));
