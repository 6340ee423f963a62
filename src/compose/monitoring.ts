import { performance } from 'node:perf_hooks';
import { droppedLogLines } from '../adapters/log.ts';
import type { ServeConfig } from '../config/config.ts';
import { packageVersion } from '../config/package-root.ts';
import { limitTo } from '../jobs/job-context.ts';
import { type Backlog, readBacklog } from '../jobs/read-backlog.ts';
import type { CellFacts } from '../observability/gauges.ts';
import type { ServerMetrics } from '../observability/server-metrics.ts';
import type { Telemetry } from '../observability/telemetry.ts';
import type { WriteFreeze } from '../ports/audit.ts';
import type { Chains } from '../ports/chains.ts';
import type { Services } from '../ports/operation-context.ts';
import type { Entropy, Log } from '../ports/runtime.ts';
import type { Admission } from '../server/admission.ts';
import type { OpenUnit } from '../server/unit-of-work.ts';
import { kindOfFailure } from '../storage/database-errors.ts';
import type { Database } from '../storage/open-database.ts';

/** How long scrapes share the values that were read from the database and from nodes. */
const READ_EVERY_MS = 10_000;
const WAIT_MS = 2_000;
/** CHOICE: the backlogs of this many cells are read concurrently. Hundreds of concurrent reads would all be late. */
const BACKLOGS_AT_ONCE = 16;

/**
 * Creates the metrics of a server, or returns undefined if none are served or sent. Their code is loaded only if
 * needed.
 */
export async function metricsFor(
  adminPort: number | undefined,
  areSent = false,
): Promise<ServerMetrics | undefined> {
  if (adminPort === undefined && !areSent) return undefined;
  const { createServerMetrics } = await import('../observability/server-metrics.ts');
  return createServerMetrics();
}

/** Returns a function that counts failed statements by kind. */
export function countFailures(metrics: ServerMetrics | undefined): ((error: unknown) => void) | undefined {
  return metrics && ((error) => metrics.databaseError(kindOfFailure(error)));
}

interface Watched {
  readonly services: Pick<Services, 'machine' | 'chains' | 'log'>;
  readonly admission: Pick<Admission, 'counts'> | undefined;
  /** The chains that have real nodes. */
  readonly chains: readonly { readonly caip2: string }[];
  /** Returns the cells that have started. */
  readonly cells: () => readonly WatchedCell[];
  /** Whether the metrics of databases have the label `cell`. By default, they do not. */
  readonly hasCells?: boolean;
  /** Returns, by the cell's name, 1 if a cell cannot serve its apps. Undefined for a sandbox. */
  readonly unavailable?: (() => Readonly<Record<string, number>>) | undefined;
}

/** One cell of a server. A server without cells has one. */
interface WatchedCell {
  readonly name: string;
  readonly services: Pick<Services, 'clock' | 'log'>;
  readonly database: Pick<Database, 'connections'>;
  readonly openUnit: OpenUnit;
  /** Set for a server whose jobs have connections of their own, one of which is always open. */
  readonly unitsOfJobs?: OpenUnit;
  /** Returns false for a cell whose database does not respond. Default: every database responds. */
  readonly isAlive?: () => boolean;
  /** Set for a server whose database may be restored. */
  readonly freeze?: Pick<WriteFreeze, 'reason'> | undefined;
}

/** Adds the gauges that are read at each scrape: about the process, the database and the chains. */
export async function watchServer(metrics: ServerMetrics | undefined, watched: Watched): Promise<void> {
  if (metrics === undefined) return;
  const gauges = await import('../observability/gauges.ts');
  const { admission, cells, hasCells = false, unavailable } = watched;
  const readUtilization = utilizationReader();
  const { registry } = metrics;
  gauges.addUtilization(registry, readUtilization);
  gauges.addDroppedLines(registry, droppedLogLines);
  if (admission !== undefined) gauges.addAdmission(registry, admission.counts);
  const known = new WeakMap<WatchedCell, CellFacts>();
  const inTurn = limitTo(BACKLOGS_AT_ONCE);
  const factsOf = (cell: WatchedCell): CellFacts => {
    const facts = known.get(cell) ?? cellFacts(gauges, cell, inTurn);
    known.set(cell, facts);
    return facts;
  };
  gauges.addCells(registry, () => cells().map(factsOf), hasCells);
  if (unavailable !== undefined) gauges.addUnavailableCells(registry, unavailable);
  gauges.addHeads(registry, headReaders(gauges, watched));
}

function utilizationReader(): () => number {
  let before = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return utilization;
  };
}

/** Adds the gauge for requests in progress. */
export async function watchRequests(
  metrics: ServerMetrics | undefined,
  server: { inFlight(): number },
): Promise<void> {
  if (metrics === undefined) return;
  const { addRequestsInFlight } = await import('../observability/gauges.ts');
  addRequestsInFlight(metrics.registry, server.inFlight);
}

type Gauges = typeof import('../observability/gauges.ts');

function cellFacts(
  { sampled }: Gauges,
  { name, services, database, openUnit, unitsOfJobs = openUnit, freeze, isAlive }: WatchedCell,
  inTurn: ReturnType<typeof limitTo>,
): CellFacts {
  const read = async (): Promise<Backlog | undefined> => {
    // A cell whose database hangs would keep the place that others wait for.
    if (isAlive?.() === false) return undefined;
    return readBacklog((await unitsOfJobs(false)).em, services.clock.now());
  };
  return {
    cell: name,
    connections: database.connections,
    isHeld: freeze && (() => freeze.reason() !== undefined),
    readBacklog: sampled({
      ...{ everyMs: READ_EVERY_MS, waitMs: WAIT_MS },
      read: () => inTurn(read),
      onFailure: (err) => services.log.warn({ err, cell: name }, 'metrics: failed to read the backlog'),
    }),
  };
}

/** Returns one reader per chain, so that a node that does not respond hides only its own chain. */
function headReaders({ sampled }: Gauges, { services, chains }: Watched) {
  return chains.map(({ caip2 }) => ({
    caip2,
    readAge: sampled({
      ...{ everyMs: READ_EVERY_MS, waitMs: WAIT_MS },
      read: async () => {
        const seconds = await latestSecondsOf(services.chains, caip2);
        return seconds === undefined ? undefined : services.machine.now() / 1000 - seconds;
      },
      onFailure: (err) => services.log.warn({ err, caip2 }, 'metrics: failed to read the head of a chain'),
    }),
  }));
}

async function latestSecondsOf(chains: Chains, caip2: string): Promise<number | undefined> {
  const chain = chains.find(caip2);
  return chain?.kind === 'evm' || chain?.kind === 'solana' ? chain.latestSeconds?.() : undefined;
}

/** Starts sending traces and metrics if that is configured. Its code is loaded only then. */
export async function telemetryFor(
  settings: ServeConfig['telemetry'],
  metrics: ServerMetrics | undefined,
  { entropy, log }: { readonly entropy: Entropy; readonly log: Log },
): Promise<Telemetry | undefined> {
  if (settings === undefined || metrics === undefined) return undefined;
  const { startTelemetry } = await import('../observability/telemetry.ts');
  return startTelemetry({ ...settings, metrics, entropy, log, version: packageVersion() });
}
