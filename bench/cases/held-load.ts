import { randomBytes } from 'node:crypto';
import type { BenchCase } from '../bench-case.ts';
import { withPostgres } from '../measure/postgres.ts';
import { measureServers, median, pick } from '../measure/rounds.ts';
import { atLeast, atMost, roundsResult } from '../report.ts';
import { createPolicyBody, getRequest, postRequest } from '../requests.ts';
import { walletRequests } from '../requests-of-wallets.ts';
import { quorumSignedRequests } from '../requests-signed.ts';
import { launchCustos, launchServe, makeApp } from '../servers/custos.ts';
import { type Address, temporaryFolder } from '../servers/launch.ts';

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

async function requestsTo(address: Address) {
  const { getWallet } = await walletRequests(address);
  return {
    [read]: getWallet,
    [list]: [getRequest(address, '/v1/wallets?limit=20')],
    [write]: [postRequest(address, '/v1/policies', createPolicyBody)],
    [sign]: await quorumSignedRequests(address),
  };
}

/**
 * The load that a server holds over HTTPS with every check on; part of the requests are signed. The case `stored` creates
 * wallets, because each of them takes 2,048 rounds of PBKDF2.
 */
export const heldLoad: BenchCase = {
  about: 'writes, reads and signed requests a second, every check on, on SQLite and PostgreSQL',
  needsPeers: false,
  async run(bench) {
    const { measured } = await withPostgres(bench.report, async (postgres) => {
      const DATABASE_URL = await postgres.create('serve');
      const environment = { DATABASE_URL, CUSTOS_MASTER_KEY: randomBytes(32).toString('hex') };
      // The same signed requests are sent again and again.
      const app = await makeApp(environment, { require_request_expiry: false, single_use_signatures: false });
      const flags = ['--data', temporaryFolder()];
      return measureServers(bench, [
        {
          name: names.sqlite,
          start: () => launchCustos({ command: 'sandbox', https: true, flags }),
          requestsTo,
        },
        { name: names.postgres, start: () => launchServe(environment, app), requestsTo },
      ]);
    });
    const goals = aims.flatMap(({ name, request, perSecond }) => {
      const { requestsPerSecond, p99Ms } = pick(measured, name, request);
      return [
        atLeast('figure', `${name}: ${request}`, median(requestsPerSecond), perSecond, '/s'),
        atMost('figure', `${name}: ${request}, p99`, median(p99Ms), MAX_P99_MS, 'ms'),
      ];
    });
    return roundsResult(measured, (request) => request, goals);
  },
};
