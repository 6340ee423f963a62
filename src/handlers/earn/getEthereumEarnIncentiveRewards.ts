import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getEthereumEarnIncentiveRewards'> = async () => {
  throw notImplemented('getEthereumEarnIncentiveRewards');
};
