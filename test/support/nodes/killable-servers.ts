import { Client } from 'pg';
import { Agent } from 'undici';
import type { DatabaseConfig } from '../../../src/config/config.ts';
import { serveSettings } from '../postgres/serve-settings.ts';
import { runCommand, serveCustos, startCustos, temporaryFolder, waitFor } from '../run-custos.ts';
import type { Trap } from '../treacherous-node.ts';

interface Answered<Body> {
  readonly status: number;
  readonly body: Body;
}

/** A server in a separate process. */
export interface Server {
  readonly appId: string;
  call<Body>(method: string, path: string, body?: object): Promise<Answered<Body>>;
  kill(): Promise<unknown>;
}

/** A server that can be restarted on the same data. */
export interface Home {
  readonly database: DatabaseConfig;
  start(): Promise<Server>;
  /** Expires all claims, so that claimed work can be claimed again. */
  letTimePass(server: Server): Promise<void>;
}

interface HomeSettings {
  readonly swapRouter?: string;
  readonly rewards?: { readonly distributor: string; readonly merklUrl: string };
}

/** The sandbox on SQLite. Its clock is moved. */
async function sandboxHome(nodeUrl: string, { swapRouter, rewards }: HomeSettings): Promise<Home> {
  const data = temporaryFolder();
  return {
    database: { kind: 'folder', folder: data },
    async start() {
      const custos = await serveCustos([
        'sandbox',
        '--data',
        data,
        '--quiet',
        '--rpc',
        `eip155:8453=${nodeUrl}`,
        ...(swapRouter === undefined ? [] : ['--swap-router', `eip155:8453=${swapRouter}`]),
        ...(rewards === undefined ? [] : ['--reward-distributor', `eip155:8453=${rewards.distributor}`]),
        ...(rewards === undefined ? [] : ['--merkl-url', rewards.merklUrl]),
      ]);
      return { appId: custos.ready.app_id, call: custos.call, kill: () => custos.stop('SIGKILL') };
    },
    async letTimePass({ call }) {
      const { body } = await call<{ now_ms: number }>('GET', '/_sandbox/clock');
      await call('PUT', '/_sandbox/clock', { now_ms: body.now_ms + 90_000, frozen: false });
    },
  };
}

/** The production server on PostgreSQL. */
async function productionHome(nodeUrl: string, { swapRouter, rewards }: HomeSettings): Promise<Home> {
  const { env: settings, ca } = await serveSettings();
  const database = settings.DATABASE_URL!;
  const env = {
    ...settings,
    CUSTOS_RPC: `eip155:8453=${nodeUrl}`,
    ...(swapRouter === undefined ? {} : { CUSTOS_SWAP_ROUTERS: `eip155:8453=${swapRouter}` }),
    ...(rewards === undefined ? {} : { CUSTOS_REWARD_DISTRIBUTORS: `eip155:8453=${rewards.distributor}` }),
    ...(rewards === undefined ? {} : { CUSTOS_MERKL_URL: rewards.merklUrl }),
  };
  const created = await runCommand(['apps', 'create', '--name', 'Globex', '--json'], { env });
  const { id, secret } = JSON.parse(created.stdout) as { id: string; secret: string };
  const agent = new Agent({ connect: { ca } });
  return {
    database: { kind: 'postgres', url: database },
    async start() {
      const custos = await startCustos(['serve'], { env });
      const url = () => /"url":"([^"]+)"/.exec(custos.output().stdout)?.[1];
      await waitFor(() => url() !== undefined);
      return {
        appId: id,
        async call(method, path, body) {
          const answer = await agent.request({
            origin: new URL(url()!).origin,
            path,
            method: method as 'GET',
            headers: {
              authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
              'service-app-id': id,
              // Like published clients. Production requires it for intents.
              'service-request-expiry': String(Date.now() + 15 * 60_000),
              ...(body === undefined ? {} : { 'content-type': 'application/json' }),
            },
            body: body === undefined ? null : JSON.stringify(body),
          });
          return { status: answer.statusCode, body: (await answer.body.json()) as never };
        },
        kill: () => custos.stop('SIGKILL'),
      };
    },
    async letTimePass() {
      const client = new Client({ connectionString: database });
      await client.connect();
      for (const table of ['transactions', 'wallet_action_steps']) {
        await client.query(`update ${table} set next_check_at_ms = 0 where next_check_at_ms is not null`);
      }
      await client.end();
    },
  };
}

/** The sandbox on SQLite and the production server on PostgreSQL, each with a node of Base. */
export const homes = { sqlite: sandboxHome, postgres: productionHome };

/** The point at which a server is killed. */
export interface Step extends Trap {
  readonly name: string;
  /** Whether anything has been signed and stored before this point. */
  readonly isKept: boolean;
}

/** The steps of a single transaction. */
export const stepsOfOne: readonly Step[] = [
  { name: 'before anything is signed', method: 'eth_estimateGas', hasArrived: true, isKept: false },
  {
    name: 'between the commit and the broadcast',
    method: 'eth_sendRawTransaction',
    hasArrived: false,
    isKept: true,
  },
  {
    name: 'after the broadcast, before its answer',
    method: 'eth_sendRawTransaction',
    hasArrived: true,
    isKept: true,
  },
  { name: 'while it is followed', method: 'eth_getTransactionReceipt', hasArrived: true, isKept: true },
];

/** The additional step of actions with two transactions. */
export const betweenBroadcasts = {
  ...{ name: 'between its two broadcasts', method: 'eth_sendRawTransaction', passing: 1 },
  ...{ hasArrived: false, isKept: true },
};

/** The additional step of actions that read the movements in their transactions. */
export const whileEffectsAreRead: Step = {
  ...{ name: 'while its effects are read', method: 'eth_getTransactionByHash' },
  ...{ hasArrived: true, isKept: true },
};
