import type { BenchCase } from '../bench-case.ts';
import { requireContract } from '../measure/ask.ts';
import { cpuOf, type Entry, type Measured, measureServers, mostPerSecond, pick } from '../measure/rounds.ts';
import { atLeast, atMost, roundsResult, type Table } from '../report.ts';
import { walletRequests } from '../requests-of-wallets.ts';
import { quorumSignedRequests } from '../requests-signed.ts';
import { launchCustos } from '../servers/custos.ts';
import { launchOwn, type RunningServer, temporaryFolder } from '../servers/launch.ts';

const signed = 'personal_sign, 2 of 3 signed';
const names = { bare: 'bare', custos: 'custos sandbox --data', memory: 'custos sandbox in memory' };

/** The goals of the project, relative to bare. */
const ofBare = { getWallet: 1.5, createWallet: 1.5, personal_sign: 1.35, [signed]: 1.5 };

const bare: Entry['start'] = () => launchOwn('bare.ts', ['--work', 'stored']);
const kept = (isQuiet = true) =>
  launchCustos({ command: 'sandbox', flags: ['--data', temporaryFolder()], isQuiet });
const starts: readonly [name: string, start: Entry['start']][] = [
  [names.bare, bare],
  ['fastify', () => launchOwn('fastify.ts', ['--work', 'stored'])],
  [names.custos, () => kept()],
  ['custos sandbox --data, with log', () => kept(false)],
  [names.memory, () => launchCustos({ command: 'sandbox' })],
  // Two processes of one program differ by up to a tenth, so those that goals compare run twice.
  [names.bare, bare],
  [names.custos, () => kept()],
];

async function requestsTo(server: RunningServer) {
  const requests = { ...(await walletRequests(server)), [signed]: await quorumSignedRequests(server) };
  await requireContract(server, 'getWallet', requests.getWallet[0]!);
  await requireContract(server, 'createWallet', requests.createWallet[0]!);
  await requireContract(server, 'walletRpc', requests.personal_sign[0]!);
  await requireContract(server, 'walletRpc', requests[signed]![0]!);
  return requests;
}

/** Complete requests including keys, key store, records and SQLite; commits are on the disk before they are answered. */
export const stored: BenchCase = {
  about:
    'GET wallet, POST wallets, personal_sign, 2 of 3 signed on SQLite: bare node:http, fastify, Custos; memory',
  needsPeers: true,
  async run(bench) {
    const { measured, memory } = await measureServers(
      bench,
      starts.map(([name, start]) => ({ name, start, requestsTo })),
    );
    const perSecond = (name: string, request: string): number => mostPerSecond(pick(measured, name, request));
    const created = (name: string): number => perSecond(name, 'createWallet');
    const signing = (name: string): number => perSecond(name, 'personal_sign') / perSecond(name, 'getWallet');
    const [, , loaded] = memory.find(([name]) => name === names.custos)!;
    const of = 'requests per second: sandbox to bare';
    const goals = [
      ...Object.entries(ofBare).map(([id, limit]) => {
        const ratio = cpuOf(measured, names.custos, id) / cpuOf(measured, names.bare, id);
        return atMost('-', `${id}: sandbox to bare`, ratio, limit);
      }),
      atLeast('G9', `createWallet, ${of}`, created(names.custos) / created(names.bare), 0.95),
      atLeast('-', `personal_sign to getWallet, ${of}`, signing(names.custos) / signing(names.bare), 1),
      atMost('-', 'sandbox: resident after the load', loaded, 160, 'MB'),
    ];
    const columns = ['server', 'before the load', 'after it'];
    const resident = { title: 'Resident memory, MB', columns, rows: memory };
    const title = (request: string): string => `${request}, SQLite synced before each answer`;
    return roundsResult(measured, title, goals, [signedTable(measured), resident]);
  },
};

/** What two verifications leave of a server that does nothing else besides. */
function signedTable(measured: readonly Measured[]): Table {
  return {
    title: 'personal_sign: unsigned to 2 of 3 signed',
    columns: ['server', 'CPU', 'signed to unsigned, requests/s'],
    rows: Object.values(names).map((name) => [
      name,
      cpuOf(measured, name, 'personal_sign') / cpuOf(measured, name, signed),
      mostPerSecond(pick(measured, name, signed)) / mostPerSecond(pick(measured, name, 'personal_sign')),
    ]),
  };
}
