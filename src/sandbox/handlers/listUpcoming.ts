import { LAST_MS } from '../clock-view.ts';
import type { Handler } from '../control-plane.ts';
import { findUpcoming } from '../find-upcoming.ts';

const DEFAULT_LIMIT = 50;

export const run: Handler<'listUpcoming'> = async ({ query }, { clock, read }) => {
  const nowMs = clock.now();
  const found = await read((em) => findUpcoming({ em, nowMs, limit: query.limit ?? DEFAULT_LIMIT }));
  return {
    now_ms: nowMs,
    data: found
      // The clock cannot be set to later times.
      .filter(({ atMs }) => atMs <= LAST_MS)
      .map(({ atMs, kind, resourceId }) => ({
        at_ms: atMs,
        at: new Date(atMs).toISOString(),
        kind,
        resource_id: resourceId,
      })),
  };
};
