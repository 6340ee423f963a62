import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const updatePolicyRuleIntent: Handler<'updatePolicyRuleIntent'> = async () => {
  throw notImplemented('updatePolicyRuleIntent');
};
