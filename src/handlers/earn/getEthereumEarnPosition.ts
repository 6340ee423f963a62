import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const getEthereumEarnPosition: Handler<'getEthereumEarnPosition'> = async () => {
  throw notImplemented('getEthereumEarnPosition');
};
