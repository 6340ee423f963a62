import type { Handler } from '../control-plane.ts';
import { requireLog } from '../requests/require-log.ts';

export const run: Handler<'deleteRequests'> = async (_input, { requests }) => ({
  deleted: requireLog(requests).clear(),
});
