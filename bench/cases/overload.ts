import { setTimeout as wait } from 'node:timers/promises';
import type { Bench, BenchCase } from '../bench-case.ts';
import type { LoadRequest, LoadResult } from '../measure/load-order.ts';
import { residentMegabytesOf } from '../measure/process-usage.ts';
import { atLeast, atMost } from '../report.ts';
import { createPolicyBody, getRequest, postRequest } from '../requests.ts';
import { walletRequests } from '../requests-of-wallets.ts';
import { launchCustos } from '../servers/custos.ts';
import { freePort, type RunningServer } from '../servers/launch.ts';

const TIMES_CAPACITY = 5;
// As many as keep the server busy without a queue that any of them would notice.
const NORMAL_CONNECTIONS = 64;
const OVERLOAD_CONNECTIONS = 512;
// The admission control acts on queues that last; the start of the overload is sent and not measured.
const ONSET_SECONDS = 2;
/** How long the server may take until it works as before. */
const RECOVERY_SECONDS = 2;
const PROBE_EVERY_MS = 100;
const REFUSED = 503;

interface Overload {
  readonly normal: LoadResult;
  readonly overload: LoadResult;
  /** The normal load again, after the time to recover. */
  readonly after: LoadResult;
  /** The slowest response of `/healthz` during the load, ms. */
  readonly slowestProbeMs: number;
  /** MB before, at the end of the overload, and after the load that followed it. */
  readonly residentMb: readonly [number, number, number];
}

/**
 * At five times the requests that the server can answer: the latency of admitted requests and of the health check, and
 * how it works afterwards.
 *
 * NOTE: none is as cheap as getWallet. 512 clients that wait for their responses cannot send five times as many of
 * those as the server answers: whatever it does, each waits for 512 / (responses a second).
 */
export const overload: BenchCase = {
  about: 'latency of admitted requests and of the health check at five times the capacity',
  needsPeers: false,
  async run(bench) {
    const adminPort = await freePort();
    const server = await launchCustos({ command: 'sandbox', flags: ['--admin-port', String(adminPort)] });
    try {
      const { personal_sign } = await walletRequests(server);
      const results: [string, Overload][] = [];
      for (const [name, requests] of [
        ['personal_sign', personal_sign],
        ['createPolicy', [postRequest(server, '/v1/policies', createPolicyBody)]],
        ['list of 100 wallets', [getRequest(server, '/v1/wallets?limit=100')]],
      ] as const) {
        bench.report(`${name} at ${TIMES_CAPACITY} times the capacity`);
        results.push([name, await measure(server, { bench, requests, adminPort })]);
      }
      return report(results);
    } finally {
      await server.stop();
    }
  },
};

interface Subject {
  readonly bench: Bench;
  readonly requests: readonly LoadRequest[];
  readonly adminPort: number;
}

async function measure(server: RunningServer, { bench, requests, adminPort }: Subject): Promise<Overload> {
  const origins = [server.origin];
  const normalOrder = { origins, requests, connections: NORMAL_CONNECTIONS, seconds: bench.seconds };
  // The first load only warms the server up.
  await bench.load.run(normalOrder);
  const normal = await bench.load.run(normalOrder);
  const before = residentMegabytesOf(server.pid);
  const order = {
    origins,
    requests,
    connections: OVERLOAD_CONNECTIONS,
    perSecond: TIMES_CAPACITY * perSecond(normal),
    refusedStatus: REFUSED,
  };
  const probing = probe(adminPort);
  const overload = await bench.load.run({
    ...order,
    seconds: ONSET_SECONDS + bench.seconds,
    unmeasuredSeconds: ONSET_SECONDS,
  });
  const slowestProbeMs = await probing.stop();
  const during = residentMegabytesOf(server.pid);
  const after = await bench.load.run({
    ...normalOrder,
    seconds: RECOVERY_SECONDS + bench.seconds,
    unmeasuredSeconds: RECOVERY_SECONDS,
  });
  const residentMb = [before, during, residentMegabytesOf(server.pid)] as const;
  return { normal, overload, after, slowestProbeMs, residentMb };
}

function perSecond({ completed, elapsedMs }: LoadResult): number {
  return (completed * 1000) / elapsedMs;
}

/** Polls `/healthz` continuously. */
function probe(adminPort: number) {
  let isStopped = false;
  let slowestMs = 0;
  const asking = (async () => {
    while (!isStopped) {
      const startedMs = performance.now();
      const answer = await fetch(`http://127.0.0.1:${adminPort}/healthz`);
      await answer.arrayBuffer();
      if (answer.status !== 200) throw new Error(`/healthz answered ${answer.status}`);
      slowestMs = Math.max(slowestMs, performance.now() - startedMs);
      await wait(PROBE_EVERY_MS);
    }
  })();
  return {
    async stop(): Promise<number> {
      isStopped = true;
      await asking;
      return slowestMs;
    },
  };
}

function report(results: readonly (readonly [string, Overload])[]) {
  return {
    tables: [
      {
        title: `${TIMES_CAPACITY} times the requests that ${NORMAL_CONNECTIONS} connections get answered, over ${OVERLOAD_CONNECTIONS} connections`,
        columns: [
          'request',
          'load',
          'answered/s',
          'refused/s',
          'p50 ms',
          'p99 ms',
          'slowest /healthz ms',
          'memory MB',
        ],
        rows: results.flatMap(([name, { normal, overload, after, slowestProbeMs, residentMb }]) => [
          [name, 'normal', perSecond(normal), 0, normal.p50Ms, normal.p99Ms, '', residentMb[0]],
          [
            ...[name, 'overload', perSecond(overload), (overload.refused * 1000) / overload.elapsedMs],
            ...[overload.p50Ms, overload.p99Ms, slowestProbeMs, residentMb[1]],
          ],
          [name, 'after', perSecond(after), 0, after.p50Ms, after.p99Ms, '', residentMb[2]],
        ]),
      },
    ],
    goals: results.flatMap(([name, { normal, overload, after, slowestProbeMs }]) => {
      const admitted = `${name}: p99 of admitted requests at ${TIMES_CAPACITY} times the capacity to normal`;
      const later = `${name}: requests a second from ${RECOVERY_SECONDS} s after the overload, to normal`;
      return [
        atMost('figure', admitted, overload.p99Ms / normal.p99Ms, 2),
        atMost('figure', `${name}: slowest /healthz meanwhile`, slowestProbeMs, 1000, 'ms'),
        atLeast('figure', later, perSecond(after) / perSecond(normal), 0.8),
      ];
    }),
  };
}
