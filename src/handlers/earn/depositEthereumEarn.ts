import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const depositEthereumEarn: Handler<'depositEthereumEarn'> = async () => {
  throw notImplemented('depositEthereumEarn');
};
