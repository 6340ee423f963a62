import { listEveryWalletAction } from '../../domain/money/wallet-actions/find-wallet-action.ts';
import type { Handler } from '../control-plane.ts';

export const run: Handler<'listSandboxActions'> = async ({ query }, { read }) => {
  const { page, nextCursor } = await read((em) => listEveryWalletAction(em, query));
  return {
    data: page.map(({ id, appId, walletId, type, status, createdAtMs, endedAtMs }) => ({
      ...{ id, app_id: appId, wallet_id: walletId, type, status },
      ...{ created_at_ms: createdAtMs, ended_at_ms: endedAtMs },
    })),
    next_cursor: nextCursor,
  };
};
