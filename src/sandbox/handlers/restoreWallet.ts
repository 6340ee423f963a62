import { restoreWallet } from '../../domain/wallets/wallets/restore-wallet.ts';
import type { OperatorHandler } from '../control-plane.ts';

export const run: OperatorHandler<'restoreWallet'> = async ({ path }, { change, clock, ids, by }) => {
  const nowMs = clock.now();
  const wallet = await change((em) => restoreWallet({ em, ids, nowMs, by }, path.wallet_id));
  return {
    id: wallet.id,
    app_id: wallet.app_id,
    address: wallet.address,
    chain_type: wallet.chain_type,
  };
};
