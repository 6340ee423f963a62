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
import { type Address, type RunningServer, temporaryFolder } from '../servers/launch.ts';

const names = {
  free: 'without a policy',
  judged: 'under 20 rules of 10 conditions',
  many: 'under a cap, 50 wallets',
  one: 'under a cap, one wallet',
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
    const contestants = [
      await start(names.free, async (address) => (await judgedRequests(address)).free),
      await start(names.judged, async (address) => (await judgedRequests(address)).judged),
      await start(names.many, async (address) => (await cappedRequests(address)).many),
      await start(names.one, async (address) => (await cappedRequests(address)).one),
    ];
    return await measureRounds(contestants, { ...bench, connections: 16 });
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
    await postgres.stop();
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
