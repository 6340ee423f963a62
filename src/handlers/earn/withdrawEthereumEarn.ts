import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'withdrawEthereumEarn'> = async () => {
  throw notImplemented('withdrawEthereumEarn');
};
