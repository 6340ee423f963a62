import type { BenchCase } from '../bench-case.ts';
import { requireContract } from '../measure/ask.ts';
import type { LoadRequest } from '../measure/load-order.ts';
import { residentMegabytesOf } from '../measure/process-usage.ts';
import {
  type Contestant,
  leastCpu,
  type Measured,
  measureRounds,
  mostPerSecond,
  pick,
} from '../measure/rounds.ts';
import { atLeast, atMost, busyOthersOf, noiseTable, roundsTable, type Table } from '../report.ts';
import { walletRequests } from '../requests-of-wallets.ts';
import { quorumSignedRequests } from '../requests-signed.ts';
import { launchCustos } from '../servers/custos.ts';
import { launchOwn, type RunningServer, temporaryFolder } from '../servers/launch.ts';

const signed = 'personal_sign, 2 of 3 signed';
const operations = ['getWallet', 'createWallet', 'personal_sign', signed] as const;
const names = {
  bare: 'bare',
  fastify: 'fastify',
  custos: 'custos sandbox --data',
  logged: 'custos sandbox --data, with log',
  memory: 'custos sandbox in memory',
};

/** The goals of the project, relative to bare. */
const ofBare = { getWallet: 1.5, createWallet: 1.5, personal_sign: 1.35, [signed]: 1.5 } as const;

/** Complete requests including keys, key store, records and SQLite; commits are on the disk before they are answered. */
export const stored: BenchCase = {
  about:
    'GET wallet, POST wallets, personal_sign, 2 of 3 signed on SQLite: bare node:http, fastify, Custos; memory',
  needsPeers: true,
  async run(bench) {
    const contestants: Contestant[] = [];
    const add = async (name: string, starting: Promise<RunningServer>): Promise<void> => {
      bench.report(`starting ${name}`);
      const server = await starting;
      const contestant = { name, server, requests: {} };
      contestants.push(contestant);
      const requests = { ...(await walletRequests(server)), [signed]: await quorumSignedRequests(server) };
      contestants[contestants.length - 1] = { ...contestant, requests };
      await requireContract(server, 'getWallet', requests.getWallet[0] as LoadRequest);
      await requireContract(server, 'createWallet', requests.createWallet[0] as LoadRequest);
      await requireContract(server, 'walletRpc', requests.personal_sign[0] as LoadRequest);
      await requireContract(server, 'walletRpc', requests[signed]?.[0] as LoadRequest);
    };
    const kept = (): string[] => ['--data', temporaryFolder()];
    try {
      await add(names.bare, launchOwn('bare.ts', ['--work', 'stored']));
      await add(names.fastify, launchOwn('fastify.ts', ['--work', 'stored']));
      await add(names.custos, launchCustos({ command: 'sandbox', flags: kept() }));
      await add(names.logged, launchCustos({ command: 'sandbox', flags: kept(), isQuiet: false }));
      await add(names.memory, launchCustos({ command: 'sandbox' }));
      // Two processes of one program differ by up to a tenth, so those that goals compare run twice.
      await add(names.bare, launchOwn('bare.ts', ['--work', 'stored']));
      await add(names.custos, launchCustos({ command: 'sandbox', flags: kept() }));
      const fresh = contestants.map(({ server }) => residentMegabytesOf(server.pid));
      const measured = await measureRounds(contestants, { ...bench, connections: 16 });
      const loaded = contestants.map(({ server }) => residentMegabytesOf(server.pid));
      return report(measured, memoryTable(contestants, fresh, loaded));
    } finally {
      await Promise.all(contestants.map(({ server }) => server.stop()));
    }
  },
};

function memoryTable(contestants: readonly Contestant[], fresh: number[], loaded: number[]): Table {
  return {
    title: 'Resident memory, MB',
    columns: ['server', 'before the load', 'after it'],
    rows: contestants.map(({ name }, index) => [name, fresh[index] ?? 0, loaded[index] ?? 0]),
  };
}

/** What two verifications leave of a server that does nothing else besides. */
function signedTable(measured: readonly Measured[]): Table {
  const compared = [names.bare, names.custos, names.memory];
  return {
    title: 'personal_sign: unsigned to 2 of 3 signed',
    columns: ['server', 'CPU', 'signed to unsigned, requests/s'],
    rows: compared.map((name) => {
      const unsignedOnes = pick(measured, name, 'personal_sign');
      const signedOnes = pick(measured, name, signed);
      return [
        name,
        leastCpu(unsignedOnes) / leastCpu(signedOnes),
        mostPerSecond(signedOnes) / mostPerSecond(unsignedOnes),
      ];
    }),
  };
}

function report(measured: readonly Measured[], memory: Table) {
  const cpu = (name: string, request: string): number => leastCpu(pick(measured, name, request));
  const signingToReading = (name: string): number =>
    mostPerSecond(pick(measured, name, 'personal_sign')) / mostPerSecond(pick(measured, name, 'getWallet'));
  const created = (name: string): number => mostPerSecond(pick(measured, name, 'createWallet'));
  const loaded = (name: string): number => memory.rows.find(([row]) => row === name)?.[2] as number;
  return {
    tables: [
      ...operations.map((request) =>
        roundsTable(`${request}, SQLite synced before each answer`, measured, request),
      ),
      signedTable(measured),
      memory,
      noiseTable(measured),
    ],
    goals: [
      ...operations.map((request) =>
        atMost({
          id: '-',
          what: `${request}: sandbox to bare`,
          measured: cpu(names.custos, request) / cpu(names.bare, request),
          limit: ofBare[request],
        }),
      ),
      atLeast({
        id: 'G9',
        what: 'createWallet, requests per second: sandbox to bare',
        measured: created(names.custos) / created(names.bare),
        limit: 0.95,
      }),
      atLeast({
        id: '-',
        what: 'personal_sign to getWallet, requests per second: sandbox to bare',
        measured: signingToReading(names.custos) / signingToReading(names.bare),
        limit: 1,
      }),
      atMost({
        id: '-',
        what: 'sandbox: resident after the load',
        measured: loaded(names.custos),
        limit: 160,
        unit: 'MB',
      }),
    ],
    busyOthers: busyOthersOf(measured),
  };
}
