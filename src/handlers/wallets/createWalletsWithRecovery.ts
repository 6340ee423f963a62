import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const createWalletsWithRecovery: Handler<'createWalletsWithRecovery'> = async () => {
  throw notImplemented('createWalletsWithRecovery');
};
