import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const updatePolicyIntent: Handler<'updatePolicyIntent'> = async () => {
  throw notImplemented('updatePolicyIntent');
};
