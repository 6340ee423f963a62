import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const getEthereumEarnVault: Handler<'getEthereumEarnVault'> = async () => {
  throw notImplemented('getEthereumEarnVault');
};
