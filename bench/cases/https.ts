import { generateKeyPairSync, sign as signWith, verify } from 'node:crypto';
import type { BenchCase } from '../bench-case.ts';
import { requireContract } from '../measure/ask.ts';
import type { LoadRequest } from '../measure/load-order.ts';
import {
  type Contestant,
  leastCpu,
  type Measured,
  measureRounds,
  mostPerSecond,
  pick,
} from '../measure/rounds.ts';
import { atLeast, busyOthersOf, noiseTable, roundsTable } from '../report.ts';
import { walletRequests } from '../requests-of-wallets.ts';
import { quorumSignedRequests } from '../requests-signed.ts';
import { launchCustos } from '../servers/custos.ts';
import { type RunningServer, temporaryFolder } from '../servers/launch.ts';

const kept = 'custos sandbox --data';
const requests = ['createWallet', 'getWallet', 'personal_sign', 'personal_sign, 2 of 3 signed'] as const;

/** What clients on this machine experience: HTTPS, every check enabled, SQLite synced at each commit. */
export const https: BenchCase = {
  about: 'requests a second over HTTPS with every check on, signed ones too (G9)',
  needsPeers: false,
  async run(bench) {
    const servers: RunningServer[] = [];
    const start = async (name: string, flags: string[]): Promise<Contestant> => {
      bench.report(`starting ${name}`);
      const server = await launchCustos({ command: 'sandbox', https: true, flags });
      servers.push(server);
      const signed = await quorumSignedRequests(server);
      await requireContract(server, 'walletRpc', signed[0] as LoadRequest);
      return { name, server, requests: { ...(await walletRequests(server)), [requests[3]]: signed } };
    };
    try {
      const contestants = [
        await start(kept, ['--data', temporaryFolder()]),
        await start('custos sandbox in memory', []),
      ];
      return report(await measureRounds(contestants, { ...bench, connections: 16 }));
    } finally {
      await Promise.all(servers.map((server) => server.stop()));
    }
  },
};

const VERIFICATIONS = 2_000;

/** CPU µs of one verification of a P-256 signature, which nothing that a server does can avoid. */
function verificationMicroseconds(): number {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const payload = Buffer.alloc(300, 1);
  const signature = signWith('sha256', payload, privateKey);
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 3; round += 1) {
    const before = process.cpuUsage();
    for (let done = 0; done < VERIFICATIONS; done += 1) verify('sha256', payload, publicKey, signature);
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / VERIFICATIONS);
  }
  return least;
}

function report(measured: readonly Measured[]) {
  const perSecond = (request: (typeof requests)[number]): number =>
    mostPerSecond(pick(measured, kept, request));
  const [, get, sign, signed] = requests;
  const unsignedCpu = leastCpu(pick(measured, kept, sign));
  const verification = verificationMicroseconds();
  const leftByVerifications = unsignedCpu / (unsignedCpu + 2 * verification);
  return {
    tables: [
      ...requests.map((request) => roundsTable(`${request}, HTTPS`, measured, request)),
      {
        title: '2-of-3 signed to unsigned: what two verifications alone leave',
        columns: ['unsigned, CPU µs', 'one verification, CPU µs', 'limit of the ratio'],
        rows: [[unsignedCpu, verification, leftByVerifications]],
      },
      noiseTable(measured),
    ],
    goals: [
      atLeast({
        id: 'G9',
        what: 'HTTPS: GET /v1/wallets/{id}',
        measured: perSecond(get),
        limit: 4000,
        unit: '/s',
      }),
      atLeast({
        id: 'G9',
        what: 'HTTPS: 2-of-3 signed to unsigned personal_sign',
        measured: perSecond(signed) / perSecond(sign),
        limit: 0.75,
      }),
      atLeast({
        id: '-',
        what: 'the same, to what two verifications leave, CPU',
        measured: unsignedCpu / leastCpu(pick(measured, kept, signed)) / leftByVerifications,
        limit: 0.8,
      }),
    ],
    busyOthers: busyOthersOf(measured),
  };
}
