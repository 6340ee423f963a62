import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { packageRoot } from '../config/package-root.ts';
import { type DocumentedErrors, documentedErrorsOf } from '../sandbox/faults/fault-rules.ts';
import type { MeasureCoverage } from '../sandbox/requests/request-view.ts';
import type { ContractDocument } from '../tools/contract/contract-document.ts';
import { exchangeOf } from '../tools/coverage/archive.ts';
import { figuresOf, titleOf } from '../tools/coverage/judge.ts';
import { type Dimension, dimensions, startMeasuring } from '../tools/coverage/measure.ts';
import { contractDocument } from '../tools/coverage/report.ts';

/** Other requests are handled after each batch of this many entries. */
const BATCH = 20;

let document: ContractDocument | undefined;

/** Measures which parts of the API document the entries of an archive use. The document is read on first use. */
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

let errors: DocumentedErrors | undefined;

/**
 * Returns the errors of each operation that the API document describes. The document is read on first use, because only
 * fault rules need it.
 */
export function documentedErrors(): DocumentedErrors {
  errors ??= documentedErrorsOf(
    JSON.parse(readFileSync(join(packageRoot(), 'openapi', 'openapi.json'), 'utf8')),
  );
  return errors;
}
