import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ContractDocument } from '../../contract/contract-document.ts';
import { exchangeOf } from '../../coverage/archive.ts';
import { figuresOf, titleOf } from '../../coverage/judge.ts';
import { type Dimension, dimensions, startMeasuring } from '../../coverage/measure.ts';
import { contractDocument } from '../../coverage/render.ts';
import type { MeasureCoverage } from '../../sandbox/requests/measured-coverage.ts';

/** Entries judged before other requests are served. */
const BATCH = 20;

let document: ContractDocument | undefined;

/** What the entries of an archive used of the contract. The document is read for the first one. */
export const measureCoverage: MeasureCoverage = async (entries, eventCounts) => {
  document ??= contractDocument();
  const measuring = startMeasuring(document, eventCounts);
  for (const [index, entry] of entries.entries()) {
    if (index % BATCH === BATCH - 1) await nextTurn();
    for (const exchange of exchangeOf(entry)) measuring.add(exchange);
  }
  const measured = measuring.finish();
  const { requests, unknownRequests, undocumented, rows } = measured;
  const figures = figuresOf(measured);
  return {
    requests,
    unknownRequests,
    undocumented: [...undocumented].map(([name, count]) => ({ name, count })),
    figures: ([...Object.keys(dimensions), 'all'] as (Dimension | 'all')[]).map((dimension) => ({
      dimension,
      title: titleOf(dimension),
      covered: figures[dimension].covered,
      total: figures[dimension].total,
    })),
    rows,
  };
};
