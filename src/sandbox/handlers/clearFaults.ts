import type { Handler } from '../control-plane.ts';

export const run: Handler<'clearFaults'> = async (_input, { faults }) => ({ removed: faults.clear() });
