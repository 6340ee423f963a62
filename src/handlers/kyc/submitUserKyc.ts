import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const submitUserKyc: Handler<'submitUserKyc'> = async () => {
  throw notImplemented('submitUserKyc');
};
