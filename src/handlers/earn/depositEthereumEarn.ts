import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const depositEthereumEarn: Handler<'depositEthereumEarn'> = async () => {
  throw notImplemented('depositEthereumEarn');
};
