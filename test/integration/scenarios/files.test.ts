import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { runCommandLine } from '../../../src/cli/program.ts';
import { ScenarioFailedError, startSandbox, type TestSandbox } from '../../../src/testing/testing.ts';

const examples = join(import.meta.dirname, '../../../examples/scenarios');
const lostAnswer = join(examples, 'lost-answer.arazzo.yaml');
const twoSignatures = join(examples, 'two-signatures.arazzo.yaml');

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ clock: 'frozen' });
});
afterAll(() => sandbox.close());
beforeEach(() => sandbox.reset());
afterEach(() => void vi.restoreAllMocks());

/** A file with one workflow of these steps, each calling an operation. */
function fileOf(steps: readonly object[], rest: object = {}): string {
  const file = join(mkdtempSync(join(tmpdir(), 'custos-arazzo-')), 'trial.arazzo.json');
  const document = {
    arazzo: '1.0.1',
    info: { title: 'Trial', version: '1' },
    sourceDescriptions: [{ name: 'api', url: 'openapi.json', type: 'openapi' }],
    workflows: [{ workflowId: 'trial', steps, ...rest }],
  };
  writeFileSync(file, JSON.stringify(document));
  return file;
}

async function custos(...args: string[]) {
  const lines: string[] = [];
  const errors: string[] = [];
  vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
  vi.spyOn(console, 'error').mockImplementation((line: string) => void errors.push(line));
  const before = process.exitCode;
  const code = await runCommandLine([...args, '--url', sandbox.baseUrl, '--ca-file', sandbox.caFile]);
  const exit = code === 0 ? (process.exitCode ?? 0) : code;
  process.exitCode = before;
  return { exit, output: lines.join('\n'), errors: errors.join('\n') };
}

describe('the examples', () => {
  test('a transfer whose response got lost is paid once', async () => {
    const { steps, outputs } = await sandbox.runScenario(lostAnswer, { inputs: { amount: '7.5' } });
    expect(steps.filter(({ operation }) => operation === 'transferFromWallet')).toMatchObject([
      { status: 0, failures: ['expected $statusCode == 200, $statusCode is 0'] },
      { status: 200, failures: [] },
    ]);
    expect(outputs['pay-once']).toMatchObject({ received: '7.5' });
    expect(await sandbox.events('wallet_action.transfer.succeeded')).toHaveLength(1);
  });

  test('one signature is refused, two are accepted, and a proposal expires', async () => {
    const { exit, output, errors } = await custos('scenario', 'run', twoSignatures);
    expect({ exit, errors }, output).toEqual({ exit: 0, errors: '' });
    expect(output).toContain(
      'ok      sign alone: Alice alone is refused  (walletRpc 401 incorrect_quantity_of_authorization_signatures)',
    );
    expect(output).toContain('Two signatures: 5 steps succeeded');
    expect(output).toMatch(/sign\.signature {2}"0x[0-9a-f]{130}"/);
  });
});

describe('a file', () => {
  const getWallet = (id: string, more: object = {}) => ({
    stepId: 'read',
    operationId: 'getWallet',
    parameters: [{ name: 'wallet_id', in: 'path', value: id }],
    ...more,
  });

  test('a file fails with the criterion, what was observed, the hint and the request', async () => {
    const file = fileOf([getWallet('ext_wal_nobody')]);
    const { exit, output } = await custos('scenario', 'run', file);
    expect(exit).toBe(1);
    expect(output).toMatch(
      /failed {2}trial read {2}\(getWallet 404 .*\)\n {8}expected a 2xx status, got 404\n/,
    );
    expect(output).toMatch(/custos why [0-9a-f-]{36}\n\nTrial: failed$/);
    await expect(sandbox.runScenario(file)).rejects.toThrow(ScenarioFailedError);
  });

  test('that cannot be run is refused as a whole, before a request is sent', async () => {
    const before = (await sandbox.fetch(`${sandbox.baseUrl}/_sandbox/requests`)).json();
    const steps = [
      getWallet('x', { successCriteria: [{ condition: '$statusCode ==' }] }),
      { stepId: 'read', operationId: 'getWalet' },
      { stepId: 'sign', operationId: 'listWallets', 'x-sign-as': ['alice'] },
      { stepId: 'on', operationId: 'getClock', onSuccess: [{ name: 'go', type: 'goto', stepId: 'nowhere' }] },
    ];
    const { exit, errors } = await custos('scenario', 'run', fileOf(steps, { dependsOn: ['other'] }));
    expect(exit).toBe(2);
    expect(errors.split('\n').slice(1)).toEqual([
      '  - trial: more than one step is called `read`',
      '  - no workflow is called `other`',
      '  - trial, step read: `$statusCode ==`: expected a value, got the end',
      expect.stringContaining(
        '  - trial, step read: no operation is called `getWalet`; did you mean `getWallet`',
      ),
      '  - trial, step sign: `listWallets` does not accept authorization signatures',
      '  - trial, step on: no step is called `nowhere`',
    ]);
    expect((await sandbox.fetch(`${sandbox.baseUrl}/_sandbox/requests`)).json()).toEqual(before);
  });

  test('a file is refused for what is not Arazzo 1.0, or not supported, with its place', async () => {
    const criterion = { condition: '$.data', type: 'jsonpath', context: '$response.body' };
    const file = fileOf([getWallet('x', { successCriteria: [criterion], retries: 3, 'x-note': 'kept' })]);
    const { exit, errors } = await custos('scenario', 'run', file);
    expect({ exit, errors: errors.split('\n').slice(1) }).toEqual({
      exit: 2,
      errors: [
        '  - /workflows/0/steps/0/successCriteria/0/type: expected simple or regex, got `"jsonpath"`',
        '  - /workflows/0/steps/0/retries: unknown field',
      ],
    });
    expect(await custos('scenario', 'run', 'nowhere.yaml')).toMatchObject({
      exit: 2,
      errors: 'custos: invalid argument:\n  - `nowhere.yaml` cannot be read',
    });
  });

  test('needs its inputs, of their types', async () => {
    const inputs = {
      type: 'object',
      required: ['id'],
      properties: { id: { type: 'string' }, count: { type: 'integer', default: 1 } },
    };
    const file = fileOf([getWallet('$inputs.id')], { inputs });
    expect(await custos('scenario', 'run', file, '--input', 'count:=1.5', '--input', 'name=a')).toMatchObject(
      {
        exit: 2,
        errors: [
          'custos: invalid inputs:',
          '  - no workflow has the input `name`',
          '  - input `count`: expected integer, got `1.5`',
          '  - the workflow trial needs the input `id`',
        ].join('\n'),
      },
    );
    const { steps } = await sandbox.runScenario(file, { inputs: { id: 'ext_wal_alice' } });
    expect(steps).toMatchObject([{ status: 200, operation: 'getWallet' }]);
  });
});

test('a scenario by name has the ids of what it created', async () => {
  const { outputs, steps } = await sandbox.runScenario('quorum-short');
  expect(steps.at(-1)).toMatchObject({ status: 401 });
  const wallet = await sandbox.call('getWallet', { path: { wallet_id: outputs.wallet as string } });
  expect(wallet.owner_id).toBe(outputs.key_quorum);
});
