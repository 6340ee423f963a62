import { createWalletsWithRecovery } from '../../domain/wallets/recovery/create-wallets-with-recovery.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'createWalletsWithRecovery'> = ({ body }, context) =>
  createWalletsWithRecovery(context, body);
