import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';
import { afterAll, describe, expect, test } from 'vitest';

// A sandbox starts and signs on a machine without a network, and opens connections to loopback addresses only.

const root = join(import.meta.dirname, '..', '..', '..');
const folder = mkdtempSync(join(tmpdir(), 'custos-offline-'));
afterAll(() => rmSync(folder, { recursive: true }));

const works = (command: string, ...args: string[]): boolean => spawnSync(command, args).status === 0;
const canUnshare = works('unshare', '-r', '-n', 'true') && works('ip', '-V');
const canTrace = works('strace', '-V');

const custos = `'${process.execPath}' '${join(root, 'dist', 'custos.js')}'`;

/** Starts a sandbox, signs with a wallet of it as its owner, waits for an event and stops it. Prints the signature. */
const session = `
set -e
cd '${folder}'
rm -f ready.json
${custos} sandbox --port 0 --seed offline --seed-data --ready-file ready.json --quiet & sandbox=$!
for wait in $(seq 300); do if [ -f ready.json ]; then break; fi; sleep 0.1; done
at='--ready-file ready.json'
${custos} call walletRpc ext_wal_alice $at --sign alice method=personal_sign params.message=Hello params.encoding=utf-8
${custos} trigger wallet.archived $at > triggered
kill $sandbox
wait $sandbox || true
`;

describe.runIf(env.TEST_LONG === '1')('a sandbox without a network', () => {
  const run = (command: string, ...args: string[]) =>
    execFileSync(command, args, { encoding: 'utf8', timeout: 60_000, env: { PATH: env.PATH, HOME: folder } });

  test.runIf(canUnshare)('starts, signs and stops where only the loopback is up', { timeout: 70_000 }, () => {
    run('node', join(root, 'codegen', 'build.ts'));
    const output = run('unshare', '-r', '-n', 'sh', '-c', `ip link set lo up\n${session}`);
    expect(JSON.parse(output).data.signature).toMatch(/^0x[0-9a-f]{130}$/);
  });

  test.runIf(canTrace)(
    'a sandbox without a network connects to nothing but this machine',
    { timeout: 70_000 },
    () => {
      run('node', join(root, 'codegen', 'build.ts'));
      const script = join(folder, 'session.sh');
      writeFileSync(script, session);
      const calls = 'trace=connect,sendto,sendmsg,sendmmsg';
      run('strace', '-f', '-ff', '-e', calls, '-o', join(folder, 'trace'), 'sh', script);
      const traces = readdirSync(folder).filter((name) => name.startsWith('trace.'));
      const lines = traces.flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n'));
      const addressed = lines.filter((line) => /sin6?_(port|addr)|inet_addr|inet_pton/.test(line));
      const outward = addressed.filter((line) => !/inet_addr\("127\.|inet_pton\(AF_INET6, "::1"/.test(line));
      // The commands reach the sandbox, so the trace does see connections.
      expect(addressed.length).toBeGreaterThan(0);
      expect(outward).toEqual([]);
    },
  );
});
