import { ApiError } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';
import { MAX_FAULTS } from '../faults/fault-rules.ts';
import { readFault } from '../faults/read-fault.ts';
import { selectionOf } from '../faults/select-by.ts';

export const run: Handler<'addFault'> = async ({ body }, context) => {
  const rule = readFault(body, context.documentedErrors);
  const added = context.faults.add(rule, await selectionOf(body, context));
  if (added !== undefined) return added;
  throw new ApiError('invalid_state', `a sandbox has at most ${MAX_FAULTS} fault rules; remove some first`);
};
