import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const listIntents: Handler<'listIntents'> = async () => {
  throw notImplemented('listIntents');
};
