import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const updateKeyQuorumIntent: Handler<'updateKeyQuorumIntent'> = async () => {
  throw notImplemented('updateKeyQuorumIntent');
};
