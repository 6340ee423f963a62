import { randomBytes } from 'node:crypto';
import type { BenchCase } from '../bench-case.ts';
import type { LoadRequest } from '../measure/load-order.ts';
import { startPostgres } from '../measure/postgres.ts';
import { type Contestant, type Measured, measureRounds, median, pick } from '../measure/rounds.ts';
import { atLeast, atMost, busyOthersOf, noiseTable, roundsTable } from '../report.ts';
import { createPolicyBody, getRequest, postRequest } from '../requests.ts';
import { walletRequests } from '../requests-of-wallets.ts';
import { quorumSignedRequests } from '../requests-signed.ts';
import { launchCustos, launchServe, makeApp } from '../servers/custos.ts';
import { type Address, type RunningServer, temporaryFolder } from '../servers/launch.ts';

const names = { sqlite: 'custos sandbox --data, HTTPS', postgres: 'custos serve on PostgreSQL' };
const [read, list, write, sign] = ['getWallet', 'list of 20', 'createPolicy', 'personal_sign, 2 of 3 signed'];

/** The least a second, and the longest that all but one in a hundred may take. */
const aims = [
  { name: names.sqlite, request: read, perSecond: 4000 },
  { name: names.sqlite, request: list, perSecond: 4000 },
  { name: names.sqlite, request: write, perSecond: 1500 },
  { name: names.sqlite, request: sign, perSecond: 800 },
  { name: names.postgres, request: write, perSecond: 1000 },
  { name: names.postgres, request: sign, perSecond: 800 },
];
const MAX_P99_MS = 50;

/**
 * The load that a server holds over HTTPS with every check on; part of the requests are signed. The case `stored` creates
 * wallets, because each of them takes 2,048 rounds of PBKDF2.
 */
export const heldLoad: BenchCase = {
  about: 'writes, reads and signed requests a second, every check on, on SQLite and PostgreSQL',
  needsPeers: false,
  async run(bench) {
    bench.report('starting PostgreSQL');
    const postgres = await startPostgres();
    const servers: RunningServer[] = [];
    try {
      servers.push(
        await launchCustos({ command: 'sandbox', https: true, flags: ['--data', temporaryFolder()] }),
      );
      const environment = {
        DATABASE_URL: await postgres.create('serve'),
        CUSTOS_MASTER_KEY: randomBytes(32).toString('hex'),
      };
      // The same signed requests are sent again and again.
      const app = await makeApp(environment, { require_request_expiry: false, single_use_signatures: false });
      servers.push(await launchServe(environment, app));
      const contestants: Contestant[] = [];
      for (const [at, server] of servers.entries())
        contestants.push({
          name: Object.values(names)[at] as string,
          server,
          requests: await requestsTo(server),
        });
      return report(await measureRounds(contestants, { ...bench, connections: 16 }));
    } finally {
      await Promise.all(servers.map((server) => server.stop()));
      await postgres.stop();
    }
  },
};

async function requestsTo(address: Address): Promise<Record<string, LoadRequest[]>> {
  const { getWallet } = await walletRequests(address);
  return {
    [read]: getWallet,
    [list]: [getRequest(address, '/v1/wallets?limit=20')],
    [write]: [postRequest(address, '/v1/policies', createPolicyBody)],
    [sign]: await quorumSignedRequests(address),
  };
}

function report(measured: readonly Measured[]) {
  return {
    tables: [
      ...[read, list, write, sign].map((request) => roundsTable(request, measured, request)),
      noiseTable(measured),
    ],
    goals: aims.flatMap(({ name, request, perSecond }) => {
      const { requestsPerSecond, p99Ms } = pick(measured, name, request);
      return [
        atLeast({
          ...{ id: 'figure', what: `${name}: ${request}` },
          ...{ measured: median(requestsPerSecond), limit: perSecond, unit: '/s' },
        }),
        atMost({
          ...{ id: 'figure', what: `${name}: ${request}, p99` },
          ...{ measured: median(p99Ms), limit: MAX_P99_MS, unit: 'ms' },
        }),
      ];
    }),
    busyOthers: busyOthersOf(measured),
  };
}
