import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const withdrawEthereumEarn: Handler<'withdrawEthereumEarn'> = async () => {
  throw notImplemented('withdrawEthereumEarn');
};
