import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const submitUserKyc: Handler<'submitUserKyc'> = async () => {
  throw notImplemented('submitUserKyc');
};
