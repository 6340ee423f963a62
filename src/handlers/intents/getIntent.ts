import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const getIntent: Handler<'getIntent'> = async () => {
  throw notImplemented('getIntent');
};
