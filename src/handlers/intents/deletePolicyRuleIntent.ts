import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const deletePolicyRuleIntent: Handler<'deletePolicyRuleIntent'> = async () => {
  throw notImplemented('deletePolicyRuleIntent');
};
