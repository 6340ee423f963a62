import { notFound } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';

export const run: Handler<'removeFault'> = async ({ path }, { faults }) => {
  const rule = faults.remove(path.fault_id);
  if (rule === undefined) throw notFound('Fault');
  return rule;
};
