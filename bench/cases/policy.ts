import { randomBytes } from 'node:crypto';
import type { BenchCase } from '../bench-case.ts';
import { withPostgres } from '../measure/postgres.ts';
import { cpuOf, measureServers } from '../measure/rounds.ts';
import { atMost, roundsResult } from '../report.ts';
import { cappedRequests, judgedRequests } from '../requests-judged.ts';
import { launchServe, makeApp } from '../servers/custos.ts';
import type { Address } from '../servers/launch.ts';

const [free, judged] = ['without a policy', 'under 20 rules of 10 conditions'];
const request = 'eth_signTransaction';

/** A separate server for each kind of request, so that none is affected by data of the others. */
const kinds = {
  [free]: async (address: Address) => (await judgedRequests(address)).free,
  [judged]: async (address: Address) => (await judgedRequests(address)).judged,
  'under a cap, 50 wallets': async (address: Address) => (await cappedRequests(address)).many,
  'under a cap, one wallet': async (address: Address) => (await cappedRequests(address)).one,
};

/** The cost of policies, per signature: of a large one, and of the lock on a running total. */
export const policy: BenchCase = {
  about: 'eth_signTransaction under 20 rules of 10 conditions and under a running total, to none',
  needsPeers: false,
  async run(bench) {
    const { measured } = await withPostgres(bench.report, (postgres) =>
      measureServers(
        bench,
        Object.entries(kinds).map(([name, requestsOf], at) => ({
          name,
          async start() {
            const DATABASE_URL = await postgres.create(`policy_${at}`);
            const environment = { DATABASE_URL, CUSTOS_MASTER_KEY: randomBytes(32).toString('hex') };
            return launchServe(environment, await makeApp(environment));
          },
          requestsTo: async (server) => ({ [request]: await requestsOf(server) }),
        })),
      ),
    );
    const ratio = cpuOf(measured, judged, request) / cpuOf(measured, free, request);
    const goal = atMost('policy', '20 rules of 10 conditions to no policy, CPU', ratio, 1.15);
    return roundsResult(measured, () => `${request}, custos serve on PostgreSQL`, [goal]);
  },
};
