import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const listUserKyc: Handler<'listUserKyc'> = async () => {
  throw notImplemented('listUserKyc');
};
