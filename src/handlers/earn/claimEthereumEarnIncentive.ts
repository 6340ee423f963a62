import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const claimEthereumEarnIncentive: Handler<'claimEthereumEarnIncentive'> = async () => {
  throw notImplemented('claimEthereumEarnIncentive');
};
