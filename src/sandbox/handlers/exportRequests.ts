import type { Handler } from '../control-plane.ts';
import { latestRequests } from '../requests/follow-requests.ts';
import { httpArchiveOf } from '../requests/http-archive.ts';
import { requireLog } from '../requests/require-log.ts';

const DEFAULT_LIMIT = 1000;

export const run: Handler<'exportRequests'> = ({ query }, context) => {
  const { redaction, baseUrl, version } = context;
  const found = latestRequests(requireLog(context.requests), query, query.limit ?? DEFAULT_LIMIT);
  return httpArchiveOf(found, { redaction, origin: baseUrl(), version });
};
