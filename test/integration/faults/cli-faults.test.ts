import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { runCommandLine } from '../../../src/cli/program.ts';
import { attempt } from '../../support/call.ts';
import { temporaryFolder } from '../../support/run-custos.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
afterEach(() => void vi.restoreAllMocks());

/** Runs a `custos faults` command in this process. */
async function faults(...args: string[]) {
  const lines: string[] = [];
  const errors: string[] = [];
  vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
  vi.spyOn(console, 'error').mockImplementation((line: string) => void errors.push(line));
  const address = ['--url', sandbox.baseUrl, '--ca-file', sandbox.caFile];
  const code = await runCommandLine(['faults', ...args, ...address]);
  return { code, output: lines.join('\n'), errors: errors.join('\n') };
}

test('custos faults adds, lists and removes rules', async () => {
  const rpc = ['--code', 'unavailable', '--operation', 'walletRpc'];
  expect(await faults('add', 'error', ...rpc, '--probability', '12.5%', '--count', '3')).toMatchObject({
    code: 0,
    output: 'fault_1  error unavailable  operation=walletRpc  12.5%  0 of 3 hits',
  });
  await faults('add', 'latency', '--delay', '200ms-2s', '--wallet', 'ext_wal_alice');
  await faults('add', 'rate_limit', '--retry-after', '1m', '--undocumented');
  expect((await faults('list')).output.split('\n')).toEqual([
    'fault_1  error unavailable    operation=walletRpc   12.5%  0 of 3 hits',
    'fault_2  latency 200-2000 ms  wallet=ext_wal_alice         0 hits',
    'fault_3  rate_limit                                        0 hits',
  ]);
  const listed = (await faults('list', '--json')).output.split('\n').map((line) => JSON.parse(line));
  expect(listed[0]).toMatchObject({ probability: 0.125, count: 3 });
  expect(listed[2]).toMatchObject({ retry_after_seconds: 60, is_undocumented: true });

  expect((await faults('clear', 'fault_2')).output).toBe('removed 1 fault rule');
  expect((await faults('clear', '--json')).output).toBe('{"removed":2}');
  expect(await faults('list')).toMatchObject({ code: 0, output: '' });
});

test('custos faults replay answers with the responses of a recording, each once', async () => {
  const folder = temporaryFolder();
  const file = join(folder, 'recording.har');
  const entry = (operation: string | null, status: number, body: unknown) => ({
    _operationId: operation,
    response: {
      status,
      headers: [
        { name: 'Retry-After', value: '9' },
        { name: 'Content-Length', value: '1' },
        { name: 'Content-Encoding', value: 'gzip' },
      ],
      content: { text: JSON.stringify(body) },
    },
  });
  const entries = [
    entry('getWallet', 503, { error: 'first' }),
    entry(null, 404, {}),
    entry('listWallets', 200, { data: [], next_cursor: null }),
    entry('getWallet', 500, { error: 'second' }),
  ];
  writeFileSync(file, JSON.stringify({ log: { version: '1.2', entries } }));
  expect((await faults('replay', file)).output).toBe('added 3 rules; `custos faults list` shows them');
  const path = { wallet_id: 'ext_wal_alice' };
  const seen: unknown[] = [];
  for (let time = 0; time < 3; time += 1) {
    const { status, body, headers } = await attempt(sandbox, 'getWallet', { path });
    seen.push([status, (body as { error?: string }).error, headers['retry-after']]);
  }
  expect(seen).toEqual([
    [503, 'first', '9'],
    [500, 'second', '9'],
    [200, undefined, undefined],
  ]);
  expect((await attempt(sandbox, 'listWallets', { query: {} })).body).toEqual({
    data: [],
    next_cursor: null,
  });
  await faults('clear');
  expect(
    (await faults('replay', file, '--operation', 'listWallets', '--json')).output.split('\n'),
  ).toHaveLength(1);
  expect((await faults('replay', file, '--operation', 'createUser')).errors).toContain(
    'expected a response of `createUser`, got none',
  );
  const long = join(folder, 'long.har');
  const many = Array.from({ length: 101 }, () => entry('getWallet', 503, {}));
  writeFileSync(long, JSON.stringify({ log: { version: '1.2', entries: many } }));
  expect((await faults('replay', long)).errors).toContain('at most 100 fault rules');
  expect((await faults('list')).output).not.toContain('getWallet');
  const noArchive = join(folder, 'none.har');
  writeFileSync(noArchive, '{}');
  expect((await faults('replay', noArchive)).errors).toContain('expected an HTTP Archive with `log.entries`');
  await faults('clear');
});

test('custos faults add respond reads its body from the command line or a file', async () => {
  const file = join(temporaryFolder(), 'denied.json');
  writeFileSync(file, '{"error":"of the file"}');
  const given = ['respond', '--operation', 'getWallet', '--status', '503', '--count', '1'];
  for (const [body, error] of [
    ['{"error":"inline"}', 'inline'],
    [file, 'of the file'],
  ] as const) {
    expect((await faults('add', ...given, '--header', 'x-from=rule', '--body', body)).code).toBe(0);
    const answer = await attempt(sandbox, 'getWallet', { path: { wallet_id: 'ext_wal_alice' } });
    expect(answer).toMatchObject({ status: 503, body: { error }, headers: { 'x-from': 'rule' } });
  }
  expect((await faults('add', ...given, '--body', 'absent.json')).errors).toContain(
    '--body: expected JSON or a file',
  );
  await faults('clear');
});

test('custos faults says what is wrong with a rule', async () => {
  const failing = async (...args: string[]) => {
    const { code, errors } = await faults('add', ...args);
    return { code, errors };
  };
  for (const [args, text] of [
    [['latency', '--probability', '0'], '--probability: expected a share such as 0.25 or 25%, got `0`'],
    [['latency', '--count', 'many'], '--count: expected a positive number, got `many`'],
    [['latency', '--delay', 'long'], '--delay: expected a duration such as 500ms, 5s or 2m, got `long`'],
    [['error', '--code', 'unavailabel'], 'did you mean `unavailable`?'],
    [['explosion'], '/effect: '],
  ] as const) {
    const { code, errors } = await failing(...args);
    expect(code).toBe(2);
    expect(errors).toContain(text);
  }
});
