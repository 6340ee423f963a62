import { countEvents } from '../../domain/access/webhooks/count-events.ts';
import type { Handler } from '../control-plane.ts';
import { latestRequests } from '../requests/follow-requests.ts';
import { httpArchiveOf } from '../requests/http-archive.ts';
import type { MeasuredCoverage } from '../requests/measured-coverage.ts';
import { requireLog } from '../requests/require-log.ts';

/** As many as the log holds. */
const MOST = 10_000;

export const run: Handler<'measureCoverage'> = async ({ query }, context) => {
  const { redaction, baseUrl, version, requests: log, read } = context;
  const recorded = latestRequests(requireLog(log), {}, MOST);
  const archive = await httpArchiveOf(recorded, { redaction, origin: baseUrl(), version });
  const measured = await context.measureCoverage(archive.log.entries, await read(countEvents));
  const { requests, unknownRequests, undocumented, figures, rows } = measured;
  return {
    requests,
    unknown_requests: unknownRequests,
    undocumented: [...undocumented],
    figures: [...figures],
    operations: operationsOf(rows),
    rows: rows
      .filter(({ operation }) => operation === query.operation)
      .map(({ dimension, name, count }) => ({ dimension, name, count })),
  };
};

function operationsOf(rows: MeasuredCoverage['rows']) {
  const found = new Map<string, { requests: number; covered: number; total: number }>();
  for (const { dimension, operation, count } of rows) {
    if (operation === undefined) continue;
    const sum = found.get(operation) ?? { requests: 0, covered: 0, total: 0 };
    if (dimension === 'operations') sum.requests = count;
    else {
      sum.total += 1;
      if (count > 0) sum.covered += 1;
    }
    found.set(operation, sum);
  }
  return [...found].map(([operation, sum]) => ({ operation, ...sum }));
}
