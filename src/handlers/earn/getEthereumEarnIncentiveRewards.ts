import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const getEthereumEarnIncentiveRewards: Handler<'getEthereumEarnIncentiveRewards'> = async () => {
  throw notImplemented('getEthereumEarnIncentiveRewards');
};
