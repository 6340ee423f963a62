import type { Bench } from '../bench-case.ts';
import type { RunningServer } from '../servers/launch.ts';
import type { LoadRequest } from './load-order.ts';
import {
  cpuMicrosecondsOf,
  cpuWithChildrenOf,
  machineBusyMicroseconds,
  residentMegabytesOf,
} from './process-usage.ts';

/** By the name of what they measure. Each list is sent in order, repeatedly. */
type Requests = Readonly<Record<string, readonly LoadRequest[]>>;

/** A server of a comparison. */
export interface Entry {
  /** Those of several processes of the same server are measured as one. */
  readonly name: string;
  start(): Promise<RunningServer>;
  requestsTo(server: RunningServer): Promise<Requests> | Requests;
}

interface Contestant {
  readonly name: string;
  readonly server: RunningServer;
  readonly requests: Requests;
}

type RoundOptions = Omit<Bench, 'starts'> & { readonly connections: number };

/** One server on one request, over all rounds. */
export interface Measured {
  readonly contestant: string;
  readonly request: string;
  /** CPU time of the server process and its children per request, in microseconds; one entry per round. */
  readonly cpuMicroseconds: number[];
  readonly requestsPerSecond: number[];
  readonly p50Ms: number[];
  readonly p99Ms: number[];
  /** Cores used by processes other than the server and the load generator. */
  readonly busyOthers: number[];
}

const WARM_UP_SECONDS = 1;
// While others were measured, V8 has shrunk the heap.
const ROUND_WARM_UP_SECONDS = 0.5;

/** Starts the servers one after the other, measures their requests in rounds, and stops them. */
export async function measureServers(bench: Bench, entries: readonly Entry[], connections = 16) {
  const contestants: Contestant[] = [];
  const servers: RunningServer[] = [];
  const resident = (): number[] => servers.map(({ pid }) => residentMegabytesOf(pid));
  try {
    for (const { name, start, requestsTo } of entries) {
      bench.report(`starting ${name}`);
      const server = await start();
      servers.push(server);
      contestants.push({ name, server, requests: await requestsTo(server) });
    }
    const fresh = resident();
    const measured = await measureRounds(contestants, { ...bench, connections });
    const loaded = resident();
    /** Megabytes before and after the load. */
    const memory = entries.map(({ name }, at): [string, number, number] => [name, fresh[at]!, loaded[at]!]);
    return { measured, memory };
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
}

/**
 * Measures every request on every server once a round, so that other load on the machine affects all equally.
 *
 * NOTE: starts with a warm-up: V8 compiles a large program for longer than a small one. A short one precedes each round,
 * because other processes may have evicted caches.
 */
async function measureRounds(contestants: readonly Contestant[], options: RoundOptions): Promise<Measured[]> {
  const measured = new Map<string, Measured>();
  for (const contestant of contestants) {
    for (const request of Object.keys(contestant.requests)) {
      options.report(`warming up ${contestant.name}, ${request}`);
      await warmUp(contestant, request, options);
      measured.set(`${contestant.name} ${request}`, nothingYet(contestant.name, request));
    }
  }
  for (let round = 1; round <= options.rounds; round += 1) {
    for (const contestant of contestants) {
      for (const request of Object.keys(contestant.requests)) {
        options.report(`round ${round} of ${options.rounds}: ${contestant.name}, ${request}`);
        await measureOnce(contestant, measured.get(`${contestant.name} ${request}`) as Measured, options);
      }
    }
  }
  return [...measured.values()];
}

function warmUp(contestant: Contestant, request: string, options: RoundOptions): Promise<void> {
  return repeatUntilCheapest(
    options.warmUpSeconds,
    () => send(contestant, request, WARM_UP_SECONDS, options),
    () => cpuWithChildrenOf(contestant.server.pid),
  );
}

/**
 * Sends requests until they have not become cheaper for two turns.
 *
 * @param cpuNow CPU time of the server until now, in microseconds.
 */
async function repeatUntilCheapest(
  mostTurns: number,
  sendForASecond: () => Promise<{ readonly completed: number }>,
  cpuNow: () => number,
): Promise<void> {
  let least = Number.POSITIVE_INFINITY;
  let stable = 0;
  for (let done = 0; done < mostTurns && stable < 2; done += 1) {
    const before = cpuNow();
    const { completed } = await sendForASecond();
    const cpu = (cpuNow() - before) / completed;
    stable = cpu < least * 0.97 ? 0 : stable + 1;
    least = Math.min(least, cpu);
  }
}

async function measureOnce(contestant: Contestant, measured: Measured, options: RoundOptions): Promise<void> {
  const { server } = contestant;
  await send(contestant, measured.request, ROUND_WARM_UP_SECONDS, options);
  const before = usage(server.pid, options.load.pid);
  const { completed, elapsedMs, p50Ms, p99Ms } = await send(
    contestant,
    measured.request,
    options.seconds,
    options,
  );
  const after = usage(server.pid, options.load.pid);
  measured.cpuMicroseconds.push((after.server - before.server) / completed);
  measured.requestsPerSecond.push((completed * 1000) / elapsedMs);
  measured.p50Ms.push(p50Ms);
  measured.p99Ms.push(p99Ms);
  const ours = after.server - before.server + after.load - before.load;
  measured.busyOthers.push(Math.max(0, after.machine - before.machine - ours) / (elapsedMs * 1000));
}

function usage(serverPid: number, loadPid: number) {
  return {
    server: cpuWithChildrenOf(serverPid),
    load: cpuMicrosecondsOf(loadPid),
    machine: machineBusyMicroseconds(),
  };
}

function send({ server, requests }: Contestant, request: string, seconds: number, options: RoundOptions) {
  return options.load.run({
    origins: [server.origin],
    caPem: server.origin.startsWith('https:') ? server.caPem : undefined,
    connections: options.connections,
    seconds,
    requests: requests[request] as readonly LoadRequest[],
  });
}

function nothingYet(contestant: string, request: string): Measured {
  return {
    contestant,
    request,
    cpuMicroseconds: [],
    requestsPerSecond: [],
    p50Ms: [],
    p99Ms: [],
    busyOthers: [],
  };
}

/** The minimum over all rounds, which has the least interference. */
export function leastCpu({ cpuMicroseconds }: Measured): number {
  return Math.min(...cpuMicroseconds);
}

export function mostPerSecond({ requestsPerSecond }: Measured): number {
  return Math.max(...requestsPerSecond);
}

/** The largest CPU time of all rounds divided by the smallest. */
export function spreadOf({ cpuMicroseconds }: Measured): number {
  return Math.max(...cpuMicroseconds) / Math.min(...cpuMicroseconds);
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2;
}

/** The CPU time of a request, in microseconds. */
export function cpuOf(measured: readonly Measured[], contestant: string, request: string): number {
  return leastCpu(pick(measured, contestant, request));
}

export function pick(measured: readonly Measured[], contestant: string, request: string): Measured {
  const found = measured.find((entry) => entry.contestant === contestant && entry.request === request);
  if (found === undefined) throw new Error(`${contestant}, ${request} was not measured`);
  return found;
}
