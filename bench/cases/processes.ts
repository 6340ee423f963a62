import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import type { Bench, BenchCase } from '../bench-case.ts';
import { ask } from '../measure/ask.ts';
import type { LoadRequest } from '../measure/load-order.ts';
import { startPostgres } from '../measure/postgres.ts';
import { cpuOfTree } from '../measure/process-tree.ts';
import { cpuMicrosecondsOf } from '../measure/process-usage.ts';
import { repeatUntilCheapest } from '../measure/rounds.ts';
import { atLeast, atMost, type Goal, type Table } from '../report.ts';
import { getRequest, personalSignRequest, postRequest } from '../requests.ts';
import { quorumSignedRequests } from '../requests-signed.ts';
import { launchServe, makeApp } from '../servers/custos.ts';
import { type Address, launchOwn, type RunningServer } from '../servers/launch.ts';

const CONNECTIONS = 16;
const WALLETS = 100;
/** While the others were measured, V8 has shrunk the heap, and caches have gone cold. Each of two gets half of it. */
const TURN_WARM_UP_SECONDS = 1;
/** Values in the typed data of the heaviest request: 20 KB, of which the server is the only one who does much with it. */
const TYPED_VALUES = 200;
const signing = ['personal_sign', 'personal_sign, 2 of 3 signed', 'eth_signTypedData_v4, 20 KB'] as const;

/** CPU time per request, in microseconds, of each part that a core is needed for. */
interface Costs {
  readonly http: number;
  readonly signer: number;
  readonly postgres: number;
  readonly load: number;
}

interface Round extends Costs {
  readonly perSecond: number;
}

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
      const app = await makeApp(environment, { require_request_expiry: false, single_use_signatures: false });
      const start = async (starting: Promise<RunningServer>): Promise<RunningServer> => {
        const server = await starting;
        servers.push(server);
        return server;
      };
      const ours = {
        one: [await start(launchServe(environment, app, 1))],
        two: [await start(launchServe(environment, app, 2))],
      };
      const bareArguments = ['--work', 'capped', '--database', environment.DATABASE_URL];
      const first = await start(launchOwn('bare.ts', bareArguments));
      const bare = { one: [first], two: [first, await start(launchOwn('bare.ts', bareArguments))] };
      return report(await measure(ours, bare, bench));
    } finally {
      await Promise.all(servers.map((server) => server.stop()));
      await postgres.stop();
    }
  },
};

/** A server in one process, and in two. */
interface Pair {
  readonly one: readonly RunningServer[];
  readonly two: readonly RunningServer[];
}

interface Subject {
  readonly request: string;
  readonly one: Round[];
  readonly two: Round[];
  /**
   * One process at half the rate of two, which is what each of the two gets: the fewer requests a process has at once, the
   * more often it waits and wakes, and the more each of them costs.
   */
  readonly half: Round[];
  /** The bare server, one process and two, where it has the operation. */
  readonly bareOne: Round[];
  readonly bareTwo: Round[];
  readonly bareHalf: Round[];
}

async function measure(ours: Pair, bare: Pair, bench: Bench): Promise<Subject[]> {
  const one = ours.one[0]!;
  const two = ours.two[0]!;
  // Both servers have the same wallets, so requests of one fit the other.
  const unsigned = await unsignedRequests(one);
  const requests: Record<string, LoadRequest[]> = {
    ...unsigned,
    [signing[1]]: await quorumSignedRequests(one),
  };
  // A signature covers the URL.
  const ofTwo: Record<string, LoadRequest[]> = { ...requests, [signing[1]]: await quorumSignedRequests(two) };
  const ofBare = await unsignedRequests(bare.one[0]!);
  const measured = Object.keys(requests).map(
    (request): Subject => ({ request, one: [], two: [], half: [], bareOne: [], bareTwo: [], bareHalf: [] }),
  );
  for (let round = 0; round <= bench.rounds; round += 1) {
    for (const subject of measured) {
      const { request } = subject;
      bench.report(round === 0 ? `warming up ${request}` : `round ${round} of ${bench.rounds}: ${request}`);
      const turns = [
        { rounds: subject.one, servers: ours.one, sent: requests[request] },
        { rounds: subject.two, servers: ours.two, sent: ofTwo[request] },
        { rounds: subject.half, servers: ours.one, sent: requests[request], halfOf: subject.two },
        { rounds: subject.bareOne, servers: bare.one, sent: ofBare[request] },
        { rounds: subject.bareTwo, servers: bare.two, sent: ofBare[request] },
        { rounds: subject.bareHalf, servers: bare.one, sent: ofBare[request], halfOf: subject.bareTwo },
      ];
      for (const { rounds, servers, sent, halfOf } of turns) {
        if (sent === undefined) continue;
        const rate = halfOf?.at(-1);
        if (round > 0) rounds.push(await measureOnce(servers, sent, bench, rate && rate.perSecond / 2));
        else if (halfOf === undefined) await warmUp(servers, sent, bench);
      }
    }
  }
  return measured;
}

function originsOf(servers: readonly RunningServer[]): string[] {
  return servers.map(({ origin }) => origin);
}

async function warmUp(
  servers: readonly RunningServer[],
  requests: readonly LoadRequest[],
  { load, warmUpSeconds }: Bench,
): Promise<void> {
  const order = { origins: originsOf(servers), connections: CONNECTIONS, seconds: 1, requests };
  await repeatUntilCheapest(
    warmUpSeconds,
    () => load.run(order),
    () => sumOf(servers, ({ pid }) => cpuOfTree(pid, () => true)),
  );
}

async function measureOnce(
  servers: readonly RunningServer[],
  requests: readonly LoadRequest[],
  { load, seconds }: Bench,
  perSecond?: number,
): Promise<Round> {
  const used = (): Costs => ({
    http: sumOf(servers, ({ pid }) => cpuOfTree(pid, (line) => !isSigner(line))),
    signer: sumOf(servers, ({ pid }) => cpuOfTree(pid, isSigner)),
    postgres: cpuOfTree(process.pid, (line) => line.includes('postgres')),
    load: cpuMicrosecondsOf(load.pid),
  });
  const order = { origins: originsOf(servers), connections: CONNECTIONS, requests };
  await load.run({ ...order, seconds: TURN_WARM_UP_SECONDS });
  const before = used();
  const { completed, elapsedMs } = await load.run({
    ...{ ...order, seconds },
    ...(perSecond === undefined ? {} : { perSecond }),
  });
  const after = used();
  const per = (part: keyof Costs): number => (after[part] - before[part]) / completed;
  return {
    ...{ http: per('http'), signer: per('signer'), postgres: per('postgres'), load: per('load') },
    perSecond: (completed * 1000) / elapsedMs,
  };
}

function sumOf<Item>(items: readonly Item[], of: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + of(item), 0);
}

/** The signer is the only process with a permission model. */
function isSigner(commandLine: string): boolean {
  return commandLine.includes('--permission');
}

/** What the bare server can do on PostgreSQL, too. */
async function unsignedRequests(address: Address): Promise<Record<string, LoadRequest[]>> {
  const createWallet = postRequest(address, '/v1/wallets', { chain_type: 'ethereum' });
  const ids: string[] = [];
  for (let made = 0; made < WALLETS; made += 1)
    ids.push((await ask<{ id: string }>(address, createWallet)).id);
  return {
    getWallet: ids.map((id) => getRequest(address, `/v1/wallets/${id}`)),
    createWallet: [createWallet],
    [signing[0]]: ids.map((id) => personalSignRequest(address, id, 'hello')),
    [signing[2]]: ids.map((id) => postRequest(address, `/v1/wallets/${id}/rpc`, typedDataBody())),
  };
}

function typedDataBody(): object {
  const values = Array.from({ length: TYPED_VALUES }, (_, at) => ({
    to: `0x${String(at).padStart(40, '0')}`,
    amount: String(10n ** 18n + BigInt(at)),
  }));
  return {
    method: 'eth_signTypedData_v4',
    chain_type: 'ethereum',
    params: {
      typed_data: {
        domain: { name: 'Payroll', version: '1', chainId: 8453 },
        primary_type: 'Run',
        types: {
          EIP712Domain: [
            { name: 'name', type: 'string' },
            { name: 'version', type: 'string' },
            { name: 'chainId', type: 'uint256' },
          ],
          Run: [{ name: 'payments', type: 'Payment[]' }],
          Payment: [
            { name: 'to', type: 'address' },
            { name: 'amount', type: 'uint256' },
          ],
        },
        message: { payments: values },
      },
    },
  };
}

const totalOf = ({ http, signer, postgres, load }: Costs): number => http + signer + postgres + load;
const ofServer = ({ http, signer }: Costs): number => http + signer;

/** The round with the least CPU time in the server. */
function best(rounds: readonly Round[]): Round {
  return rounds.reduce((least, each) => (ofServer(each) < ofServer(least) ? each : least));
}

function mostPerSecond(rounds: readonly Round[]): number {
  return Math.max(...rounds.map(({ perSecond }) => perSecond));
}

/**
 * How much faster any second process can make this, by the costs of one: with one, a request waits for the core of its
 * HTTP process or for any of the cores; with two, only for the cores, which the signer, the database and the load
 * generator need too.
 */
function limitOf({ one }: Subject): number {
  const costs = best(one);
  const byCores = availableParallelism() / totalOf(costs);
  return Math.min(2, byCores / Math.min(byCores, 1 / costs.http));
}

function costsTable(measured: readonly Subject[]): Table {
  const rows = measured.flatMap(({ request, one, two, half, bareOne, bareTwo, bareHalf }) =>
    (
      [
        ['one process', one],
        ['--workers 2', two],
        ['one process, half their rate', half],
        ['bare, one process', bareOne],
        ['bare, two processes', bareTwo],
        ['bare, one process, half their rate', bareHalf],
      ] as const
    )
      .filter(([, rounds]) => rounds.length > 0)
      .map(([name, rounds]) => {
        const { http, signer, postgres, load } = best(rounds);
        return [request, name, http, signer, postgres, load];
      }),
  );
  return {
    title: 'CPU µs/request',
    columns: ['request', '', 'HTTP', 'signer', 'PostgreSQL', 'load generator'],
    rows,
  };
}

/** What a second process costs the bare server is the limit. */
function costGoalOfBare({ request }: Subject, ours: number, bare: number | undefined): Goal[] {
  if (bare === undefined) return [];
  const what = `two processes to one: ${request}, CPU, to what it is for the bare server`;
  return [atMost({ id: '-', what, measured: ours / bare, limit: 1.2 })];
}

function speedGoalOfBare(ours: number, bare: number | undefined): Goal[] {
  if (bare === undefined) return [];
  const what = 'the same, to what it is for the bare server';
  return [atLeast({ id: '-', what, measured: ours / bare, limit: 0.9 })];
}

function report(measured: readonly Subject[]) {
  const speedUp = ({ one, two }: Pick<Subject, 'one' | 'two'>): number =>
    mostPerSecond(two) / mostPerSecond(one);
  /** Of two processes of the bare server, on the same cores and database. */
  const speedUpOfBare = ({ bareOne, bareTwo }: Subject): number | undefined =>
    bareOne.length === 0 ? undefined : speedUp({ one: bareOne, two: bareTwo });
  const ratioOfCosts = ({ one, two }: Pick<Subject, 'one' | 'two'>): number =>
    ofServer(best(two)) / ofServer(best(one));
  /** What the second process itself costs. */
  const ratioToHalf = ({ half, two }: Pick<Subject, 'half' | 'two'>): number =>
    ofServer(best(two)) / ofServer(best(half));
  const ratioOfBare = ({ bareOne, bareTwo }: Subject): number | undefined =>
    bareOne.length === 0 ? undefined : ratioOfCosts({ one: bareOne, two: bareTwo });
  return {
    tables: [
      {
        title: `custos serve on PostgreSQL, requests a second, ${availableParallelism()} cores for everything`,
        columns: [
          'request',
          'one process',
          '--workers 2',
          'ratio',
          'of bare',
          'limit by the cores',
          'CPU ratio',
          'of bare',
          'CPU to one at half the rate',
          'of bare',
        ],
        rows: measured.map((subject) => [
          ...[subject.request, mostPerSecond(subject.one), mostPerSecond(subject.two)],
          ...[speedUp(subject), speedUpOfBare(subject) ?? '-', limitOf(subject)],
          ...[ratioOfCosts(subject), ratioOfBare(subject) ?? '-', ratioToHalf(subject)],
          subject.bareHalf.length === 0 ? '-' : ratioToHalf({ half: subject.bareHalf, two: subject.bareTwo }),
        ]),
      },
      costsTable(measured),
    ],
    goals: measured.flatMap((subject) => [
      ...costGoalOfBare(subject, ratioOfCosts(subject), ratioOfBare(subject)),
      atMost({
        id: 'G11',
        what: `two workers to one process: ${subject.request}, CPU of HTTP and signer`,
        measured: ratioOfCosts(subject),
        limit: 1.1,
      }),
      atMost({
        id: '-',
        what: `the same to one process at half their rate`,
        measured: ratioToHalf(subject),
        limit: 1.1,
      }),
      ...((signing as readonly string[]).includes(subject.request)
        ? [
            atLeast({
              id: 'G11',
              what: `two workers to one process: ${subject.request}`,
              measured: speedUp(subject),
              limit: 1.5,
            }),
            atLeast({
              id: '-',
              what: `the same, to what the cores of this machine allow`,
              measured: speedUp(subject) / limitOf(subject),
              limit: 0.9,
            }),
            ...speedGoalOfBare(speedUp(subject), speedUpOfBare(subject)),
          ]
        : []),
    ]),
  };
}
