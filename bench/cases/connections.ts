import type { Bench, BenchCase } from '../bench-case.ts';
import { requireContract } from '../measure/ask.ts';
import type { LoadRequest, LoadResult } from '../measure/load-order.ts';
import { cpuWithChildrenOf, residentMegabytesOf } from '../measure/process-usage.ts';
import { atMost } from '../report.ts';
import { walletRequests } from '../requests-of-wallets.ts';
import { launchCustos } from '../servers/custos.ts';
import type { RunningServer } from '../servers/launch.ts';

const FEW = 16;
const MANY = 1_000;
const requests = ['getWallet', 'personal_sign'] as const;

interface Round {
  /** CPU time of the server to accept one connection and to answer its first request, µs. */
  readonly handshakeMicroseconds: number;
  readonly cpuMicroseconds: number;
  readonly result: LoadResult;
  /** Of the server, while the connections are open. */
  readonly residentMegabytes: number;
}

interface Subject {
  readonly request: (typeof requests)[number];
  readonly connections: number;
  readonly rounds: Round[];
}

/**
 * Many clients at once. All connections together send as many requests as a few of them, half of what the server can
 * answer, so that what differs is the number of connections and not a queue.
 */
export const connections: BenchCase = {
  about: 'GET wallet, personal_sign on 1,000 open HTTPS connections, to 16',
  needsPeers: false,
  async run(bench) {
    bench.report('starting custos sandbox');
    const server = await launchCustos({ command: 'sandbox', https: true });
    try {
      const wallets = await walletRequests(server);
      await requireContract(server, 'getWallet', wallets.getWallet[0] as LoadRequest);
      const idle = residentMegabytesOf(server.pid);
      const subjects: Subject[] = [];
      for (const request of requests) {
        const perSecond = await halfOfCapacity(server, bench, wallets[request]);
        const both = [FEW, MANY].map((count): Subject => ({ request, connections: count, rounds: [] }));
        for (let round = 0; round <= bench.rounds; round += 1) {
          for (const subject of both) {
            bench.report(
              `round ${round} of ${bench.rounds}: ${request} on ${subject.connections} connections`,
            );
            const measured = await measure(server, bench, {
              ...{ requests: wallets[request], perSecond, connections: subject.connections },
            });
            if (round > 0) subject.rounds.push(measured);
          }
        }
        subjects.push(...both);
      }
      return report(subjects, idle);
    } finally {
      await server.stop();
    }
  },
};

async function halfOfCapacity(
  server: RunningServer,
  { load, seconds }: Bench,
  sent: readonly LoadRequest[],
): Promise<number> {
  const order = { origins: [server.origin], caPem: server.caPem, connections: FEW, requests: sent, seconds };
  // The first one warms the server up.
  await load.run(order);
  const { completed, elapsedMs } = await load.run(order);
  return (completed * 1000) / elapsedMs / 2;
}

async function measure(
  { origin, caPem, pid }: RunningServer,
  { load, seconds }: Bench,
  order: {
    readonly requests: readonly LoadRequest[];
    readonly perSecond: number;
    readonly connections: number;
  },
): Promise<Round> {
  const before = cpuWithChildrenOf(pid);
  let open = before;
  let residentMegabytes = 0;
  const greeting = order.requests[0] as LoadRequest;
  const result = await load.run({ ...order, origins: [origin], caPem, seconds, greeting }, () => {
    open = cpuWithChildrenOf(pid);
    residentMegabytes = residentMegabytesOf(pid);
  });
  return {
    handshakeMicroseconds: (open - before) / order.connections,
    cpuMicroseconds: (cpuWithChildrenOf(pid) - open) / result.completed,
    result,
    residentMegabytes,
  };
}

function report(subjects: readonly Subject[], idleMegabytes: number) {
  const least = ({ rounds }: Subject, of: (round: Round) => number): number => Math.min(...rounds.map(of));
  const cpu = (request: string, count: number): number => {
    const subject = subjects.find((each) => each.request === request && each.connections === count);
    return least(subject as Subject, ({ cpuMicroseconds }) => cpuMicroseconds);
  };
  return {
    tables: [
      {
        title: `Requests at half of the capacity, HTTPS; ${idleMegabytes.toFixed(0)} MB before the load`,
        columns: [
          'request',
          'connections',
          'CPU µs/request',
          'requests/s',
          'p50 ms',
          'p99 ms',
          'CPU µs/handshake',
          'MB',
        ],
        rows: subjects.map((subject) => [
          subject.request,
          String(subject.connections),
          least(subject, ({ cpuMicroseconds }) => cpuMicroseconds),
          Math.max(...subject.rounds.map(({ result }) => (result.completed * 1000) / result.elapsedMs)),
          least(subject, ({ result }) => result.p50Ms),
          least(subject, ({ result }) => result.p99Ms),
          least(subject, ({ handshakeMicroseconds }) => handshakeMicroseconds),
          least(subject, ({ residentMegabytes }) => residentMegabytes),
        ]),
      },
    ],
    goals: requests.map((request) =>
      atMost({
        id: '-',
        what: `${request} on 1,000 HTTPS connections to 16, CPU`,
        measured: cpu(request, MANY) / cpu(request, FEW),
        limit: 1.3,
      }),
    ),
  };
}
