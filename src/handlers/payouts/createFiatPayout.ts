import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const createFiatPayout: Handler<'createFiatPayout'> = async () => {
  throw notImplemented('createFiatPayout');
};
