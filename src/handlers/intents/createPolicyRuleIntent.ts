import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const createPolicyRuleIntent: Handler<'createPolicyRuleIntent'> = async () => {
  throw notImplemented('createPolicyRuleIntent');
};
