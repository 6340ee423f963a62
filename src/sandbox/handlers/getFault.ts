import { notFound } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';

export const run: Handler<'getFault'> = async ({ path }, { faults }) => {
  const rule = faults.find(path.fault_id);
  if (rule === undefined) throw notFound('Fault');
  return rule;
};
