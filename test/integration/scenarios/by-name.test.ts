import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import { runCommandLine } from '../../../src/cli/program.ts';
import type { SandboxScenarioRun } from '../../../src/sandbox/generated/schemas.ts';
import { call, control } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(() => sandbox.reset());
afterEach(() => void vi.restoreAllMocks());

async function play(name: string): Promise<SandboxScenarioRun> {
  const { status, body } = await control(sandbox, 'POST', `/_sandbox/scenarios/${name}`);
  expect({ status, body }).toMatchObject({ status: 200 });
  return body as unknown as SandboxScenarioRun;
}
const resource = (run: SandboxScenarioRun, type: string) =>
  run.resources.find((made) => made.type === type)!.id;
const codes = ({ steps }: SandboxScenarioRun) => steps.map(({ status, code }) => code ?? status);

async function whyOf(requestId: string | null) {
  const { body } = await control(sandbox, 'GET', `/_sandbox/requests/${requestId}`);
  return (body.why as { kind: string } | null)?.kind;
}

test('quorum-short: one of two signatures is refused, both together are accepted', async () => {
  const run = await play('quorum-short');
  expect(codes(run)).toEqual([200, 200, 'incorrect_quantity_of_authorization_signatures']);
  expect(await whyOf(run.steps.at(-1)!.request_id)).toBe('quorum');
  const params = { message: 'Release invoice 2041', encoding: 'utf-8' } as const;
  await call(
    sandbox,
    'walletRpc',
    { path: { wallet_id: resource(run, 'wallet') }, body: { method: 'personal_sign', params } },
    { signWith: [aliceKey.privateKey, bobKey.privateKey] },
  );
});

test('policy-denied: the small transaction is signed, the large one is denied', async () => {
  const run = await play('policy-denied');
  expect(codes(run)).toEqual([200, 200, 200, 'policy_violation']);
  expect(await whyOf(run.steps.at(-1)!.request_id)).toBe('policy');
});

test('intent-expired: without authorization it ends after 72 hours', async () => {
  const run = await play('intent-expired');
  const path = { intent_id: resource(run, 'intent') };
  expect((await call(sandbox, 'getIntent', { path })).body.status).toBe('expired');
});

test('key-revoked: the same signature counts first and then no longer', async () => {
  const run = await play('key-revoked');
  expect(codes(run)).toEqual([200, 200, 200, 200, 'zero_correct_authorization_signatures']);
});

test('tx-reverted: a transaction reverts in its block', async () => {
  const run = await play('tx-reverted');
  const { body } = await control(sandbox, 'GET', '/_sandbox/events?type=transaction.execution_reverted');
  expect(body.data).toHaveLength(1);
  expect(codes(run).at(-1)).toBe(200);
});

test('webhook-down-5-days: the endpoint is disabled', async () => {
  const run = await play('webhook-down-5-days');
  const path = { endpoint_id: resource(run, 'webhook_endpoint') };
  expect((await call(sandbox, 'getWebhookEndpoint', { path })).body).toMatchObject({ status: 'disabled' });
});

test('custos scenario lists and runs them', async () => {
  const scenario = async (...args: string[]) => {
    const lines: string[] = [];
    const errors: string[] = [];
    vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
    vi.spyOn(console, 'error').mockImplementation((line: string) => void errors.push(line));
    const address = ['--url', sandbox.baseUrl, '--ca-file', sandbox.caFile];
    const code = await runCommandLine(['scenario', ...args, ...address]);
    return { code, output: lines.join('\n'), errors: errors.join('\n') };
  };
  expect((await scenario('list')).output.split('\n').map((line) => line.split(' ')[0])).toEqual([
    'quorum-short',
    'policy-denied',
    'intent-expired',
    'key-revoked',
    'tx-reverted',
    'webhook-down-5-days',
  ]);
  const { output } = await scenario('run', 'policy-denied');
  expect(output).toContain('4. It is asked to sign one of 1 ETH');
  expect(output).toContain('policy_violation');
  expect(output).toMatch(/\$ custos why [0-9a-f-]{36}/);
  expect(await scenario('run', 'sunshine')).toMatchObject({
    code: 1,
    errors: expect.stringMatching(/^custos: Scenario not found: expected one of `[a-z-]+`, /),
  });
});
