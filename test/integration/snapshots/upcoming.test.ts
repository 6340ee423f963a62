import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { SandboxUpcoming } from '../../../src/sandbox/generated/schemas.ts';
import {
  allow,
  allowed,
  denied,
  makeWallet,
  outcome,
  payment,
} from '../../contract/policies/enforced/policies.ts';
import { call, control } from '../../support/call.ts';
import { fund } from '../../support/fund.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { accept, refuse, startWebhookReceiver } from '../../support/webhook-receiver.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(() => sandbox.reset());

const read = async (path: string) => (await control(sandbox, 'GET', `/_sandbox${path}`)).body;
const upcoming = async (query = '') =>
  ((await read(`/clock/upcoming${query}`)) as unknown as SandboxUpcoming).data;

async function goTo(ms: number): Promise<void> {
  await control(sandbox, 'PUT', '/_sandbox/clock', { now_ms: ms });
  await sandbox.settle();
}

/** A wallet whose only payment uses up its cap for an hour. */
async function makeCappedWallet() {
  const { body: total } = await call(sandbox, 'createAggregation', {
    body: {
      name: 'Spent in an hour',
      method: 'eth_signTransaction',
      metric: { field_source: 'ethereum_transaction', field: 'value', function: 'sum' },
      window: { type: 'rolling', seconds: 3600 },
    },
  });
  const cap = {
    field_source: 'reference',
    field: `aggregation.${total.id}`,
    operator: 'lte',
    value: '5',
  } as const;
  const wallet = await makeWallet(sandbox, 'ethereum', { rules: [allow('eth_signTransaction', cap)] });
  const body = payment({ to: wallet.address, value: '0x5' });
  const pay = () => outcome(sandbox, 'walletRpc', { wallet, body });
  expect(await pay()).toBe(allowed);
  return { total, pay };
}

async function proposeIntent() {
  const body = { method: 'personal_sign', params: { message: 'x', encoding: 'utf-8' } } as const;
  const path = { wallet_id: 'ext_wal_treasury' };
  return (await call(sandbox, 'createWalletRpcIntent', { path, body })).body;
}

test('everything happens at the millisecond that is listed for it, and not before', async () => {
  const startMs = sandbox.clock.now();
  await using receiver = await startWebhookReceiver(refuse);
  const hook = { url: receiver.url, event_types: ['user.created'] };
  const { body: endpoint } = await call(sandbox, 'createWebhookEndpoint', { body: hook });
  await call(sandbox, 'createUser', {
    body: { linked_accounts: [{ type: 'email', address: 'x@example.com' }] },
  });
  await sandbox.settle();
  const { body: device } = await call(sandbox, 'authorizeOauthDevice', {
    body: { client_id: sandbox.appId },
  });
  const { total, pay } = await makeCappedWallet();
  const intent = await proposeIntent();

  const listed = await upcoming();
  const sent = await call(sandbox, 'listWebhookDeliveries', { path: { endpoint_id: endpoint.id } });
  const retryMs = sent.body.data[0]!.next_attempt_at!;
  // The lifetime of a user code and the window of the total are documented.
  const [codeMs, totalMs] = [startMs + 900_000, startMs + 3_600_000];
  expect(listed.map(({ kind, at_ms, resource_id }) => [kind, at_ms, resource_id])).toEqual([
    ['webhook_attempt', retryMs, receiver.received[0]!.id],
    ['device_code_expires', codeMs, device.user_code],
    ['total_decreases', totalMs, total.id],
    ['intent_expires', intent.expires_at + 1, intent.intent_id],
  ]);
  expect(listed.map(({ at }) => Date.parse(at))).toEqual(listed.map(({ at_ms }) => at_ms));

  receiver.reply(accept);
  const codePath = `/device_codes/${device.user_code}`;
  const codeStatus = async () => (await read(codePath)).status;
  const intentPath = { path: { intent_id: intent.intent_id } };
  const intentStatus = async () => (await call(sandbox, 'getIntent', intentPath)).body.status;
  const changes: readonly [number, () => unknown, unknown, unknown][] = [
    [retryMs, () => receiver.received.length, 1, 2],
    [codeMs, codeStatus, 'pending', 'expired'],
    [totalMs, pay, denied, allowed],
    [intent.expires_at + 1, intentStatus, 'pending', 'expired'],
  ];
  for (const [atMs, observe, before, after] of changes) {
    await goTo(atMs - 1);
    expect(await observe()).toBe(before);
    expect((await upcoming())[0]!.at_ms).toBe(atMs);
    await goTo(atMs);
    expect(await observe()).toBe(after);
    expect((await upcoming()).every(({ at_ms }) => at_ms > atMs)).toBe(true);
  }
});

test('from one entry to the next, a transfer is followed to its end', async () => {
  const path = { wallet_id: 'ext_wal_acme-ethereum' };
  const { address } = (await call(sandbox, 'getWallet', { path })).body;
  await fund(sandbox, address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
  const { body: begun } = await call(sandbox, 'transferFromWallet', {
    path,
    body: { source: { asset: 'eth', chain: 'base', amount: '0.1' }, destination: { address } },
  });
  const kinds = new Set<string>();
  let steps = 0;
  for (let [next] = await upcoming(); next !== undefined; [next] = await upcoming()) {
    kinds.add(next.kind);
    steps += 1;
    expect(steps).toBeLessThan(200);
    await goTo(next.at_ms);
  }
  expect([...kinds]).toContain('transaction_check');
  const { body: action } = await call(sandbox, 'getWalletAction', { path: { ...path, action_id: begun.id } });
  expect(action.status).toBe('succeeded');
});

test('no more is listed than asked for, the earliest first', async () => {
  const first = await proposeIntent();
  await goTo(sandbox.clock.now() + 1);
  await proposeIntent();
  expect((await upcoming('?limit=1')).map(({ resource_id }) => resource_id)).toEqual([first.intent_id]);
  for (const limit of ['0', '51', 'all']) {
    const refused = await control(sandbox, 'GET', `/_sandbox/clock/upcoming?limit=${limit}`);
    expect(refused).toMatchObject({ status: 400, body: { code: 'invalid_data' } });
  }
});
