import { randomBytes } from 'node:crypto';
import type { Bench, BenchCase } from '../bench-case.ts';
import type { LoadRequest } from '../measure/load-order.ts';
import { startPostgres } from '../measure/postgres.ts';
import { type Contestant, leastCpu, type Measured, measureRounds, pick } from '../measure/rounds.ts';
import { atMost, busyOthersOf, noiseTable, roundsTable } from '../report.ts';
import { cappedRequests, judgedRequests } from '../requests-judged.ts';
import { launchServe, makeApp } from '../servers/custos.ts';
import type { Address, RunningServer } from '../servers/launch.ts';

const names = {
  free: 'without a policy',
  judged: 'under 20 rules of 10 conditions',
  many: 'under a cap, 50 wallets',
  one: 'under a cap, one wallet',
};

/** The cost of policies, per signature: of a large one, and of the lock on a running total. */
export const policy: BenchCase = {
  about: 'eth_signTransaction under 20 rules of 10 conditions and under a running total, to none',
  needsPeers: false,
  async run(bench) {
    return report(await measureServe(bench));
  },
};

/** A separate server for each kind of request, so that none is affected by data of the others. */
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

function report(measured: readonly Measured[]) {
  const request = 'eth_signTransaction';
  const cpu = (name: string): number => leastCpu(pick(measured, name, request));
  return {
    tables: [
      roundsTable('eth_signTransaction, custos serve on PostgreSQL', measured, request),
      noiseTable(measured),
    ],
    goals: [
      atMost({
        id: 'policy',
        what: '20 rules of 10 conditions to no policy, CPU',
        measured: cpu(names.judged) / cpu(names.free),
        limit: 1.15,
      }),
    ],
    busyOthers: busyOthersOf(measured),
  };
}
