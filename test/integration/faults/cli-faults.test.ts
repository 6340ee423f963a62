import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { runCommandLine } from '../../../src/cli/program.ts';
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
