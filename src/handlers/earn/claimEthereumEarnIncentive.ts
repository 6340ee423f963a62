import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const claimEthereumEarnIncentive: Handler<'claimEthereumEarnIncentive'> = async () => {
  throw notImplemented('claimEthereumEarnIncentive');
};
