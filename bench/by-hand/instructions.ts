import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startLoad } from '../measure/load.ts';
import { walletRequests } from '../requests-of-wallets.ts';
import { bundleOwn } from '../servers/bundle-own.ts';
import { launchCustos, nodeFlags } from '../servers/custos.ts';
import { launchProgram, type RunningServer, temporaryFolder } from '../servers/launch.ts';

// Counts the instructions that a server executes for each request, outside of the kernel: `node
// bench/by-hand/instructions.ts getWallet`. Unlike CPU time they hardly depend on what else the machine does, so that two
// versions can be compared that differ by some percent. Needs `valgrind`, which runs the server some thirty times slower, but
// its jobs by the clock. What those take is counted without requests, and subtracted.

const { values, positionals } = parseArgs({
  options: {
    server: { type: 'string', multiple: true, default: ['bare', 'required', 'promised', 'custos'] },
    /** Seconds of requests before the count, until the functions are compiled. */
    warm: { type: 'string', default: '60' },
    requests: { type: 'string', default: '1500' },
  },
  allowPositionals: true,
});
const requestName = (positionals[0] ?? 'getWallet') as 'getWallet' | 'createWallet' | 'personal_sign';
const count = Number(values.requests);
const ROUNDS = 4;
const IDLE_MS = 4_000;

const folder = temporaryFolder();
const callgrind = ['valgrind', '--tool=callgrind', '--instr-atstart=no', '--smc-check=all-non-file'];
const under = [...callgrind, `--callgrind-out-file=${join(folder, 'out')}`];

const launches: Readonly<Record<string, () => Promise<RunningServer>>> = {
  bare: async () => launchProgram([...nodeFlags, await bundleOwn('bare.ts'), '--work', 'stored'], under),
  required: async () =>
    launchProgram([...nodeFlags, await bundleOwn('required.ts'), '--work', 'stored'], under),
  promised: async () =>
    launchProgram([...nodeFlags, await bundleOwn('required.ts'), '--work', 'stored', '--complete'], under),
  custos: () => launchCustos({ command: 'sandbox', flags: ['--data', temporaryFolder()], under }),
};

/** Since the last `--zero`, of all threads. Callgrind writes them into a file, or several. */
function countOf(pid: number): number {
  control('--dump', pid);
  let sum = 0;
  for (const name of readdirSync(folder)) {
    const file = join(folder, name);
    sum += Number(/^(?:summary|totals): (\d+)/m.exec(readFileSync(file, 'utf8'))?.[1] ?? 0);
    rmSync(file);
  }
  return sum;
}

function control(...args: (string | number)[]): void {
  execFileSync('callgrind_control', args.map(String), { stdio: 'ignore' });
}

const load = startLoad();
for (const name of values.server) {
  const launchOne = launches[name];
  if (launchOne === undefined) throw new Error(`choose from ${Object.keys(launches).join(', ')}`);
  const server = await launchOne();
  const requests = (await walletRequests(server))[requestName];
  const order = { origins: [server.origin], connections: 16, requests };
  await load.run({ ...order, seconds: Number(values.warm) });
  control('--instr=on', server.pid);
  control('--zero', server.pid);
  await wait(IDLE_MS);
  const idlePerMs = countOf(server.pid) / IDLE_MS;
  const counts: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    control('--zero', server.pid);
    const { completed, elapsedMs } = await load.run({ ...order, seconds: 60, count });
    counts.push(Math.round((countOf(server.pid) - idlePerMs * elapsedMs) / completed));
  }
  console.log(`${requestName}, ${name}: ${Math.min(...counts)} instructions (${counts.join(', ')})`);
  server.child.kill('SIGKILL');
}
load.stop();
