import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const rejectIntent: Handler<'rejectIntent'> = async () => {
  throw notImplemented('rejectIntent');
};
