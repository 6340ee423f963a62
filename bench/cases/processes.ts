import { randomBytes } from 'node:crypto';
import type { Bench, BenchCase } from '../bench-case.ts';
import { ask } from '../measure/ask.ts';
import type { LoadRequest } from '../measure/load-order.ts';
import { startPostgres } from '../measure/postgres.ts';
import { atLeast } from '../report.ts';
import { getRequest, personalSignRequest, postRequest } from '../requests.ts';
import { launchServe, makeApp } from '../servers/custos.ts';
import type { Address, RunningServer } from '../servers/launch.ts';

const CONNECTIONS = 16;
const WALLETS = 100;

/** Whether a second process that shares the port and the database helps. */
export const processes: BenchCase = {
  about: 'custos serve on PostgreSQL: --workers 2 to one process (G11)',
  needsPeers: false,
  async run(bench) {
    bench.report('starting PostgreSQL');
    const postgres = await startPostgres();
    const servers: RunningServer[] = [];
    try {
      const environment = {
        DATABASE_URL: await postgres.create('serve'),
        CUSTOS_MASTER_KEY: randomBytes(32).toString('hex'),
      };
      const app = await makeApp(environment);
      for (const workers of [1, 2]) servers.push(await launchServe(environment, app, workers));
      return report(await measure(servers, bench));
    } finally {
      await Promise.all(servers.map((server) => server.stop()));
      await postgres.stop();
    }
  },
};

interface PerSecond {
  readonly request: string;
  readonly one: number[];
  readonly two: number[];
}

async function measure(servers: readonly RunningServer[], bench: Bench): Promise<PerSecond[]> {
  // Both servers have the same wallets, so requests of one fit the other.
  const requests = await requestsTo(servers[0] as RunningServer);
  const measured = Object.keys(requests).map((request): PerSecond => ({ request, one: [], two: [] }));
  const send = async (count: number, request: string, seconds: number): Promise<number> => {
    const origins = [(servers[count - 1] as RunningServer).origin];
    const order = {
      origins,
      connections: CONNECTIONS,
      seconds,
      requests: requests[request] as LoadRequest[],
    };
    const { completed, elapsedMs } = await bench.load.run(order);
    return (completed * 1000) / elapsedMs;
  };
  for (let round = 0; round <= bench.rounds; round += 1) {
    for (const { request, one, two } of measured) {
      bench.report(round === 0 ? `warming up ${request}` : `round ${round} of ${bench.rounds}: ${request}`);
      const [ofOne, ofTwo] = [await send(1, request, bench.seconds), await send(2, request, bench.seconds)];
      if (round === 0) continue;
      one.push(ofOne);
      two.push(ofTwo);
    }
  }
  return measured;
}

async function requestsTo(address: Address): Promise<Record<string, LoadRequest[]>> {
  const createWallet = postRequest(address, '/v1/wallets', { chain_type: 'ethereum' });
  const ids: string[] = [];
  for (let made = 0; made < WALLETS; made += 1)
    ids.push((await ask<{ id: string }>(address, createWallet)).id);
  return {
    getWallet: ids.map((id) => getRequest(address, `/v1/wallets/${id}`)),
    listWallets: [getRequest(address, '/v1/wallets?limit=50')],
    createWallet: [createWallet],
    personal_sign: ids.map((id) => personalSignRequest(address, id, 'hello')),
  };
}

function report(measured: readonly PerSecond[]) {
  return {
    tables: [
      {
        title: 'custos serve on PostgreSQL, requests a second, answers checked by sample',
        columns: ['request', 'one process', '--workers 2', 'ratio'],
        rows: measured.map(({ request, one, two }) => [
          request,
          Math.max(...one),
          Math.max(...two),
          Math.max(...two) / Math.max(...one),
        ]),
      },
    ],
    goals: measured.map(({ request, one, two }) =>
      atLeast({
        id: 'G11',
        what: `two workers to one process: ${request}`,
        measured: Math.max(...two) / Math.max(...one),
        limit: request === 'personal_sign' ? 1.5 : 1.35,
      }),
    ),
  };
}
