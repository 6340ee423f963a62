import type { Handler } from '../control-plane.ts';
import { followRequests } from '../requests/follow-requests.ts';
import { requireLog } from '../requests/require-log.ts';

export const run: Handler<'listRequests'> = ({ query }, context) =>
  followRequests(query, { log: requireLog(context.requests), signal: context.signal });
