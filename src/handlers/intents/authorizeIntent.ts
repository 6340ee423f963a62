import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const authorizeIntent: Handler<'authorizeIntent'> = async () => {
  throw notImplemented('authorizeIntent');
};
