import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const getEthereumEarnPosition: Handler<'getEthereumEarnPosition'> = async () => {
  throw notImplemented('getEthereumEarnPosition');
};
