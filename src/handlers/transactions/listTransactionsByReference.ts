import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const listTransactionsByReference: Handler<'listTransactionsByReference'> = async () => {
  throw notImplemented('listTransactionsByReference');
};
