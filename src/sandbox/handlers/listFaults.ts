import type { Handler } from '../control-plane.ts';

export const run: Handler<'listFaults'> = async (_input, { faults }) => ({ data: [...faults.all()] });
