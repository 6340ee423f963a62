import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { AddSandboxFaultRequest } from '../../../src/sandbox/generated/schemas.ts';
import { call, control } from '../../support/call.ts';
import { fund } from '../../support/fund.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { startWebhookReceiver, verifyWebhook } from '../../support/webhook-receiver.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(() => sandbox.reset());

const acme = { wallet_id: 'ext_wal_acme-ethereum' };
const caip2 = 'eip155:1';
const to = '0x1111111111111111111111111111111111111111';

async function addFault(body: AddSandboxFaultRequest): Promise<void> {
  const { status, body: added } = await control(sandbox, 'POST', '/_sandbox/faults', body);
  expect({ status, added }).toMatchObject({ status: 200, added: { ...body, hits: 0 } });
}

const hits = async () => {
  const { body } = await control(sandbox, 'GET', '/_sandbox/faults');
  return (body.data as { hits: number }[]).map((rule) => rule.hits);
};

async function pass(durationMs: number): Promise<void> {
  sandbox.clock.advance(durationMs);
  await sandbox.settle();
}

describe('a rule for transactions', () => {
  /** Sends one wei and returns the id of the transaction. */
  async function send(): Promise<string> {
    const { body } = await call(sandbox, 'walletRpc', {
      path: acme,
      body: { method: 'eth_sendTransaction', caip2, params: { transaction: { to, value: '0x1' } } },
    });
    return (body as { data: { transaction_id: string } }).data.transaction_id;
  }
  const statusOf = async (transaction_id: string) =>
    (await call(sandbox, 'getTransaction', { path: { transaction_id } })).body.status;
  const received = async () => {
    const [balance] = await sandbox.chains.find(caip2)!.balances(to, [null]);
    return balance;
  };
  const mine = async () => {
    await control(sandbox, 'POST', '/_sandbox/blocks', { chain: 'ethereum' });
    await pass(1000);
  };

  beforeEach(async () => {
    const { body: wallet } = await call(sandbox, 'getWallet', { path: acme });
    await fund(sandbox, wallet.address, { chain: 'ethereum', asset: 'eth', rawAmount: 10n ** 18n });
  });

  test('reverts as many as its count says, which pay their fee', async () => {
    await addFault({ effect: 'transaction_revert', chain: 'ethereum', wallet_id: acme.wallet_id, count: 1 });
    const [first, second] = [await send(), await send()];
    await mine();
    expect([await statusOf(first), await statusOf(second)]).toEqual(['execution_reverted', 'confirmed']);
    expect(await received()).toBe(1n);
    expect(await hits()).toEqual([1]);
  });

  test('a rule for transactions leaves other chains and wallets alone', async () => {
    await addFault({ effect: 'transaction_revert', chain: 'eip155:8453' });
    await addFault({ effect: 'transaction_revert', wallet_id: 'ext_wal_alice' });
    const id = await send();
    await mine();
    expect(await statusOf(id)).toBe('confirmed');
    expect(await hits()).toEqual([0, 0]);
  });

  test('a rule for transactions drops one, which is broadcast again', async () => {
    await addFault({ effect: 'transaction_drop', count: 1 });
    const id = await send();
    await control(sandbox, 'POST', '/_sandbox/blocks', { chain: 'ethereum' });
    expect(await received()).toBe(0n);
    await pass(1000);
    await mine();
    expect(await statusOf(id)).toBe('confirmed');
  });

  test('delays one by the clock of the sandbox', async () => {
    await addFault({ effect: 'transaction_delay', delay_ms: 3_600_000 });
    const id = await send();
    await pass(3_500_000);
    expect(await statusOf(id)).toBe('broadcasted');
    await pass(200_000);
    expect(await statusOf(id)).toMatch(/confirmed|finalized/);
  });

  test('reorganizes the chain: confirmed, broadcasted again, and confirmed in a later block', async () => {
    await addFault({ effect: 'transaction_reorganization', blocks: 2, count: 1 });
    const id = await send();
    const seen: [string, bigint | undefined][] = [];
    for (let time = 0; time < 4; time += 1) {
      await mine();
      seen.push([await statusOf(id), await received()]);
    }
    expect(seen).toEqual([
      ['confirmed', 0n],
      ['confirmed', 0n],
      ['broadcasted', 0n],
      ['confirmed', 1n],
    ]);
    const { body } = await control(sandbox, 'GET', '/_sandbox/events?type=transaction.*');
    const types = (body.data as { type: string }[]).map(({ type }) => type);
    expect(types.filter((type) => type === 'transaction.confirmed')).toHaveLength(2);
  });
});

describe('a rule for deliveries', () => {
  async function endpoint(url: string): Promise<string> {
    return (await call(sandbox, 'createWebhookEndpoint', { body: { url } })).body.secret;
  }
  async function restore(wallet: string, address: string): Promise<void> {
    const set = { wallet_id: wallet, wallet_address: address, chain_type: 'ethereum' };
    const { status } = await control(sandbox, 'POST', '/_sandbox/events', {
      type: 'wallet.restored',
      set_text: set,
    });
    expect(status).toBe(200);
  }
  const alice = async () =>
    (await call(sandbox, 'getWallet', { path: { wallet_id: 'ext_wal_alice' } })).body.id;

  test('a rule for deliveries sends an attempt twice, with the same id', async () => {
    await using receiver = await startWebhookReceiver();
    await endpoint(receiver.url);
    await addFault({ effect: 'webhook_duplicate', event_type: 'wallet.restored', count: 1 });
    const id = await alice();
    await restore(id, '0x1');
    await restore(id, '0x2');
    await pass(0);
    expect(receiver.received.map(({ body }) => body.wallet_address)).toEqual(['0x1', '0x1', '0x2']);
    expect(receiver.received[0]!.id).toBe(receiver.received[1]!.id);
  });

  test('a rule for deliveries signs an attempt badly; the next one is right', async () => {
    await using receiver = await startWebhookReceiver();
    const secret = await endpoint(receiver.url);
    receiver.reply((got, response) => {
      try {
        verifyWebhook(got, secret);
        response.writeHead(204).end();
      } catch {
        response.writeHead(401).end();
      }
    });
    await addFault({ effect: 'webhook_bad_signature', wallet_id: 'ext_wal_alice', count: 1 });
    await restore(await alice(), '0x1');
    await pass(0);
    expect(() => verifyWebhook(receiver.received[0]!, secret)).toThrow();
    await pass(10_000);
    expect(receiver.received).toHaveLength(2);
    verifyWebhook(receiver.received[1]!, secret);
  });

  test('delays a delivery, and those behind it; or lets them overtake it', async () => {
    await using receiver = await startWebhookReceiver();
    await endpoint(receiver.url);
    const id = await alice();
    const arrived = () => receiver.received.map(({ body }) => body.wallet_address);
    await addFault({ effect: 'webhook_delay', delay_ms: 60_000, count: 1 });
    await restore(id, '0x1');
    await restore(id, '0x2');
    // The delay begins when the event is assigned to the endpoint.
    await pass(0);
    await pass(50_000);
    expect(arrived()).toEqual([]);
    await pass(20_000);
    expect(arrived()).toEqual(['0x1', '0x2']);

    await addFault({ effect: 'webhook_reorder', delay_ms: 60_000, count: 1 });
    await restore(id, '0x3');
    await restore(id, '0x4');
    await pass(0);
    await pass(70_000);
    expect(arrived()).toEqual(['0x1', '0x2', '0x4', '0x3']);
  });
});

test('rules for transactions and deliveries name what exists', async () => {
  const add = async (body: object) => (await control(sandbox, 'POST', '/_sandbox/faults', body)).body.error;
  expect(await add({ effect: 'transaction_revert', wallet_id: 'ext_wal_nobody' })).toBe('Wallet not found');
  expect(await add({ effect: 'transaction_revert', chain: 'moon' })).toMatch(
    /^\/chain: expected the CAIP-2 id/,
  );
  expect(await add({ effect: 'transaction_revert', operation: 'walletRpc' })).toBe(
    '/operation: expected no `operation` for `transaction_revert`, which uses `chain`, `wallet_id`',
  );
  expect(await add({ effect: 'webhook_delay', event_type: 'wallet.restord' })).toMatch(/^\/event_type: /);
});
