import { randomBytes } from 'node:crypto';
import type { Bench, BenchCase } from '../bench-case.ts';
import { requireContract } from '../measure/ask.ts';
import { runInProcess } from '../measure/in-process.ts';
import type { LoadRequest } from '../measure/load-order.ts';
import { startPostgres } from '../measure/postgres.ts';
import { type Contestant, leastCpu, type Measured, measureRounds, median, pick } from '../measure/rounds.ts';
import { atMost, busyOthersOf, noiseTable, roundsTable, type Table } from '../report.ts';
import { cappedRequests, judgedRequests } from '../requests-judged.ts';
import { launchCustos, launchServe, makeApp } from '../servers/custos.ts';
import { type Address, launchOwn, type RunningServer, temporaryFolder } from '../servers/launch.ts';

const names = {
  free: 'without a policy',
  judged: 'under 20 rules of 10 conditions',
  many: 'under a cap, 50 wallets',
  one: 'under a cap, one wallet',
  // The limit of what a cap adds: the same statements, sent together as far as their answers allow.
  bareFree: 'bare, without a policy',
  bareMany: 'bare, under a cap, 50 wallets',
  bareOne: 'bare, under a cap, one wallet',
};

interface Evaluated {
  readonly microseconds: Readonly<Record<string, number>>;
  readonly ruleBytes: number;
}

/** The cost of policies: a large one over HTTPS, the same without a server, and the lock on a running total. */
export const policy: BenchCase = {
  about: 'eth_signTransaction under 20 rules of 10 conditions and under a running total, to none',
  needsPeers: false,
  async run(bench) {
    bench.report('evaluating in this machine alone');
    const args = ['--rounds', String(bench.rounds)];
    const evaluated = await runInProcess<Evaluated>('policy-evaluation.ts', args, bench.report);
    const sandbox = await measureSandbox(bench);
    const serve = await measureServe(bench);
    return report(evaluated, sandbox, serve);
  },
};

/** A separate server for each kind of request, so that none is affected by data of the others. */
async function measureSandbox(bench: Bench): Promise<Measured[]> {
  const servers: RunningServer[] = [];
  try {
    const start = async (name: string, kind: 'free' | 'judged'): Promise<Contestant> => {
      bench.report(`starting custos sandbox, ${name}`);
      const flags = ['--data', temporaryFolder()];
      const server = await launchCustos({ command: 'sandbox', https: true, flags });
      servers.push(server);
      const requests = (await judgedRequests(server))[kind];
      await requireContract(server, 'walletRpc', requests[0] as LoadRequest);
      return { name, server, requests: { eth_signTransaction: requests } };
    };
    const contestants = [await start(names.free, 'free'), await start(names.judged, 'judged')];
    return await measureRounds(contestants, { ...bench, connections: 16 });
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
}

async function measureServe(bench: Bench): Promise<Measured[]> {
  bench.report('starting PostgreSQL');
  const postgres = await startPostgres();
  const servers: RunningServer[] = [];
  try {
    const start = async (
      name: string,
      requestsTo: (address: Address) => Promise<LoadRequest[]>,
    ): Promise<Contestant> => {
      bench.report(`starting custos serve, ${name}`);
      const environment = {
        DATABASE_URL: await postgres.create(`policy_${servers.length}`),
        CUSTOS_MASTER_KEY: randomBytes(32).toString('hex'),
      };
      const server = await launchServe(environment, await makeApp(environment));
      servers.push(server);
      return { name, server, requests: { eth_signTransaction: await requestsTo(server) } };
    };
    const startBare = async (
      name: string,
      requestsTo: (address: Address) => Promise<LoadRequest[]>,
    ): Promise<Contestant> => {
      bench.report(`starting ${name}`);
      const database = await postgres.create(`policy_${servers.length}`);
      const server = await launchOwn('bare.ts', ['--work', 'capped', '--database', database]);
      servers.push(server);
      const requests = await requestsTo(server);
      await requireContract(server, 'walletRpc', requests[0] as LoadRequest);
      return { name, server, requests: { eth_signTransaction: requests } };
    };
    const contestants = [
      await start(names.free, async (address) => (await judgedRequests(address)).free),
      await start(names.judged, async (address) => (await judgedRequests(address)).judged),
      await start(names.many, async (address) => (await cappedRequests(address)).many),
      await start(names.one, async (address) => (await cappedRequests(address)).one),
      await startBare(names.bareFree, async (address) => (await judgedRequests(address)).free),
      await startBare(names.bareMany, async (address) => (await cappedRequests(address)).many),
      await startBare(names.bareOne, async (address) => (await cappedRequests(address)).one),
    ];
    return await measureRounds(contestants, { ...bench, connections: 16 });
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
    await postgres.stop();
  }
}

/** What a cap adds to a request, and what it adds where nothing else is done. */
function capTable(serve: readonly Measured[]): Table {
  const cpu = (name: string): number => leastCpu(pick(serve, name, 'eth_signTransaction'));
  return {
    title: 'A cap to no policy, CPU',
    columns: ['', 'custos serve', 'bare', 'custos serve to bare, µs'],
    rows: [
      ['without a policy', 1, 1, cpu(names.free) - cpu(names.bareFree)],
      ['under a cap, 50 wallets', ...ratios(names.many, names.bareMany)],
      ['under a cap, one wallet', ...ratios(names.one, names.bareOne)],
    ],
  };
  function ratios(ours: string, bare: string): [number, number, number] {
    return [cpu(ours) / cpu(names.free), cpu(bare) / cpu(names.bareFree), cpu(ours) - cpu(bare)];
  }
}

function report(
  { microseconds, ruleBytes }: Evaluated,
  sandbox: readonly Measured[],
  serve: readonly Measured[],
) {
  const request = 'eth_signTransaction';
  const ratio = (measured: readonly Measured[], name: string): number =>
    leastCpu(pick(measured, name, request)) / leastCpu(pick(measured, names.free, request));
  const alone: Table = {
    title: `20 rules of 10 conditions, ${ruleBytes} bytes, without a server`,
    columns: ['', 'CPU µs'],
    rows: Object.entries(microseconds),
  };
  return {
    tables: [
      alone,
      roundsTable('eth_signTransaction, HTTPS, custos sandbox --data', sandbox, request),
      roundsTable('eth_signTransaction, custos serve on PostgreSQL', serve, request),
      capTable(serve),
      noiseTable([...sandbox, ...serve]),
    ],
    goals: [
      atMost({
        id: 'policy',
        what: 'sandbox, HTTPS: 20 rules of 10 conditions to no policy, CPU',
        measured: ratio(sandbox, names.judged),
        limit: 1.15,
      }),
      atMost({
        id: 'policy',
        what: 'serve: 20 rules of 10 conditions to no policy, CPU',
        measured: ratio(serve, names.judged),
        limit: 1.15,
      }),
    ],
    busyOthers: median([busyOthersOf(sandbox), busyOthersOf(serve)]),
  };
}
