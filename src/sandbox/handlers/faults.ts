import { ApiError, notFound } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';
import { MAX_FAULTS, selectionOf } from '../faults/fault-rules.ts';
import { readFault } from '../faults/read-fault.ts';

export const listFaults: Handler<'listFaults'> = async (_input, { faults }) => ({ data: [...faults.all()] });

export const addFault: Handler<'addFault'> = async ({ body }, context) => {
  const rule = readFault(body, context);
  const added = context.faults.add(rule, await selectionOf(body, context));
  if (added !== undefined) return added;
  throw new ApiError('invalid_state', `a sandbox has at most ${MAX_FAULTS} fault rules; remove some first`);
};

export const clearFaults: Handler<'clearFaults'> = async (_input, { faults }) => ({
  removed: faults.clear(),
});

export const getFault: Handler<'getFault'> = async ({ path }, { faults }) => {
  const rule = faults.find(path.fault_id);
  if (rule === undefined) throw notFound('Fault');
  return rule;
};

export const removeFault: Handler<'removeFault'> = async ({ path }, { faults }) => {
  const rule = faults.remove(path.fault_id);
  if (rule === undefined) throw notFound('Fault');
  return rule;
};
