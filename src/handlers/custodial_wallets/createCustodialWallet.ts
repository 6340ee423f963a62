import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const createCustodialWallet: Handler<'createCustodialWallet'> = async () => {
  throw notImplemented('createCustodialWallet');
};
