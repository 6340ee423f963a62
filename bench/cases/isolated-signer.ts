import { randomBytes } from 'node:crypto';
import type { BenchCase } from '../bench-case.ts';
import { startPostgres } from '../measure/postgres.ts';
import { type Contestant, leastCpu, measureRounds, pick } from '../measure/rounds.ts';
import { atMost, noiseTable, roundsTable } from '../report.ts';
import { walletRequests } from '../requests-of-wallets.ts';
import { quorumSignedRequests } from '../requests-signed.ts';
import { launchProduction, makeApp } from '../servers/custos.ts';

const names = { inside: 'vault in the server', signer: 'isolated signer' };
const requests = ['personal_sign', 'personal_sign, owners'] as const;

/** What it costs that keys are used, and owners verified, in a process of their own. */
export const isolatedSigner: BenchCase = {
  about:
    'personal_sign of custos serve: the signer in a process of its own, and the same vault in the server',
  needsPeers: false,
  async run(bench) {
    bench.report('starting PostgreSQL');
    const postgres = await startPostgres();
    const contestants: Contestant[] = [];
    try {
      for (const [name, vault] of [
        [names.inside, 'inside'],
        [names.signer, 'signer'],
      ] as const) {
        bench.report(`starting ${name}`);
        const environment = {
          DATABASE_URL: await postgres.create(vault),
          CUSTOS_MASTER_KEY: randomBytes(32).toString('hex'),
        };
        // Requests are repeated, and each has to reach the signer.
        const app = await makeApp(environment, {
          require_request_expiry: false,
          single_use_signatures: false,
        });
        const server = await launchProduction(environment, app, vault);
        contestants.push({ name, server, requests: {} });
        const { personal_sign } = await walletRequests(server);
        contestants[contestants.length - 1] = {
          ...{ name, server },
          requests: { personal_sign, 'personal_sign, owners': await quorumSignedRequests(server) },
        };
      }
      const measured = await measureRounds(contestants, { ...bench, connections: 16 });
      const ratio = (request: string): number =>
        leastCpu(pick(measured, names.signer, request)) / leastCpu(pick(measured, names.inside, request));
      return {
        tables: [
          ...requests.map((request) =>
            roundsTable(`${request}, with the CPU time of the signer`, measured, request),
          ),
          noiseTable(measured),
        ],
        goals: requests.map((request) =>
          atMost({
            id: '-',
            what: `${request}: isolated signer to vault in the server`,
            measured: ratio(request),
            limit: 1.4,
          }),
        ),
      };
    } finally {
      await Promise.all(contestants.map(({ server }) => server.stop()));
      await postgres.stop();
    }
  },
};
