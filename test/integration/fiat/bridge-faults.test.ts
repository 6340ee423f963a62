import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { connectBridge } from '../../../src/adapters/bridge/connect.ts';
import { isUnavailable } from '../../../src/errors.ts';
import type { Log } from '../../../src/ports/runtime.ts';
import { openBankWorld, openBridgeWorld } from '../../support/fiat/bank-world.ts';
import type { Mishap } from '../../support/fiat/bridge-service.ts';

const alice = { id: undefined, kind: 'person', reference: 'app/user/1', email: 'alice@example.com' } as const;
const limits = { timeoutMs: 5000, firstPauseMs: 1, longestPauseMs: 1500, breakMs: 200 };

async function open(options: { readonly log?: Log; readonly limits?: object } = {}) {
  const world = openBankWorld();
  const bridge = await openBridgeWorld(world, { ...options, limits: { ...limits, ...options.limits } });
  const opened = await bridge.provider.openCustomer(alice);
  if ('fault' in opened) throw new Error(opened.message);
  return {
    ...{ world, ...bridge, customerId: opened.id },
    async [Symbol.asyncDispose]() {
      await bridge.service[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
    },
  };
}

const error = async (answer: Promise<unknown>): Promise<unknown> =>
  answer.then(
    () => undefined,
    (reason: unknown) => reason,
  );

const passing: readonly (readonly [string, Mishap])[] = [
  ['no answer', { kind: 'silence' }],
  ['a connection that is cut', { kind: 'cut' }],
  ['a failure', { kind: 'status', status: 500 }],
  ['a gateway without a server', { kind: 'status', status: 503 }],
];

test.each(passing)('%s is survived by asking again', async (_name, mishap) => {
  await using opened = await open({ limits: { timeoutMs: mishap.kind === 'silence' ? 500 : 5000 } });
  opened.service.next(mishap);
  expect((await opened.provider.customer(opened.customerId))?.id).toBe(opened.customerId);
});

test('after a limit, the service is asked when it says, and not at all if that is long', async () => {
  await using opened = await open();
  const { provider, service, customerId } = opened;
  service.next({ kind: 'status', status: 429, headers: { 'retry-after': '1' } });
  const startedMs = performance.now();
  await provider.customer(customerId);
  expect(performance.now() - startedMs).toBeGreaterThan(990);
  const { length } = service.seen;
  service.next({ kind: 'status', status: 429, headers: { 'retry-after': '60' } });
  expect(isUnavailable(await error(provider.customer(customerId)))).toBe(true);
  expect(service.seen).toHaveLength(length);
});

const useless: readonly (readonly [string, Mishap])[] = [
  ['text that is not JSON', { kind: 'text', text: '<html>moved</html>' }],
  ['JSON that is not an object', { kind: 'text', text: '[1]' }],
  ['an object without what was asked for', { kind: 'text', text: '{}' }],
  ['an answer beyond the limit', { kind: 'text', text: `{"id":"${'x'.repeat(1_100_000)}"}` }],
  ['another customer', { kind: 'changed', change: (body) => ({ ...body, id: 'another' }) }],
  ['a refusal of the key', { kind: 'status', status: 401 }],
  ['a redirect', { kind: 'status', status: 302, headers: { location: 'http://127.0.0.1:1/' } }],
];

test.each(useless)('%s is not believed', async (_name, mishap) => {
  await using opened = await open();
  opened.service.next(mishap, mishap, mishap);
  const reason = await error(opened.provider.customer(opened.customerId));
  expect(isUnavailable(reason)).toBe(true);
});

test('accounts and payouts of another customer, and to another address, are not believed', async () => {
  await using opened = await open();
  const { provider, service, customerId } = opened;
  const address = '0x1111111111111111111111111111111111111111';
  const usdc = { caip2: 'eip155:84532', chain: 'base_sepolia', asset: 'usdc', decimals: 6 };
  const source = { ...usdc, tokenAddress: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', address };
  const change = (member: object): Mishap => ({
    kind: 'changed',
    change: (body) => ({ ...body, ...member }),
  });
  const bank = (key: string) =>
    provider.registerBankAccount({
      ...{ key, customerId, ownerKind: 'person', ownerName: 'Alice', currency: 'gbp' },
      account: { type: 'gb', account_number: '12345678', sort_code: '123456' },
    });
  const account = await bank('bank');
  if ('fault' in account) throw new Error(account.message);
  const payout = () =>
    provider.openPayout({
      ...{ key: 'payout', customerId, bankAccountId: account.id, rail: 'faster_payments', currency: 'gbp' },
      ...{ rawAmount: 5_000_000n, source, developerFeePercent: '1.5' },
    });
  const deposits = () =>
    provider.openVirtualAccount({
      ...{ key: 'deposits', customerId, currency: 'gbp', destination: source, developerFeePercent: '1.50' },
    });
  const wrong: readonly (readonly [object, () => Promise<unknown>])[] = [
    [{ customer_id: 'another' }, () => bank('bank')],
    [{ customer_id: 'another' }, deposits],
    [{ destination: { address: '0x2222222222222222222222222222222222222222' } }, deposits],
    [{ developer_fee_percent: '15.0' }, deposits],
    [{ developer_fee_percent: 'much' }, deposits],
    [{ on_behalf_of: 'another' }, payout],
    [{ developer_fee: '0.08' }, payout],
    [
      {
        source_deposit_instructions: {
          payment_rail: 'ethereum',
          currency: 'usdc',
          amount: '5',
          to_address: address,
        },
      },
      payout,
    ],
    [
      {
        source_deposit_instructions: {
          payment_rail: 'base',
          currency: 'usdt',
          amount: '5',
          to_address: address,
        },
      },
      payout,
    ],
  ];
  for (const [member, ask] of wrong) {
    service.next(change(member));
    expect([member, isUnavailable(await error(ask()))]).toEqual([member, true]);
  }
  expect(await payout()).toMatchObject({ rawAmount: 5_000_000n });
  expect(await deposits()).toMatchObject({ status: 'activated' });
  expect(service.faults).toEqual([]);
});

test('a fee that the service refuses is the fault of the fee; it takes none in euros', async () => {
  await using opened = await open();
  const { provider, service, customerId } = opened;
  const address = '0x1111111111111111111111111111111111111111';
  const usdc = { caip2: 'eip155:84532', chain: 'base_sepolia', asset: 'usdc', decimals: 6 };
  const source = { ...usdc, tokenAddress: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', address };
  const account = await provider.registerBankAccount({
    ...{ key: 'bank', customerId, ownerKind: 'person', ownerName: 'Alice', currency: 'gbp' },
    account: { type: 'gb', account_number: '12345678', sort_code: '123456' },
  });
  if ('fault' in account) throw new Error(account.message);
  const payout = (change: object = {}) =>
    provider.openPayout({
      ...{ key: 'payout', customerId, bankAccountId: account.id, rail: 'faster_payments', currency: 'gbp' },
      ...{ rawAmount: 5_000_000n, source, developerFeePercent: '1.5', ...change },
    });
  const refusing = (member: string): Mishap => ({ kind: 'status', status: 400, member });
  const refused = { fault: 'data', pointer: '/developer_fee_percent' };
  service.next(refusing('developer_fee'));
  expect(await payout()).toMatchObject(refused);
  service.next(refusing('developer_fee_percent'));
  const order = { key: 'deposits', customerId, currency: 'gbp', destination: source };
  expect(await provider.openVirtualAccount({ ...order, developerFeePercent: '0.0000001' })).toMatchObject(
    refused,
  );
  expect(await payout()).toMatchObject({ rawAmount: 5_000_000n });
  expect(await provider.openVirtualAccount({ ...order, developerFeePercent: '01.50' })).toMatchObject({
    status: 'activated',
  });
  expect(service.seen.slice(-2).map(({ body }) => body)).toMatchObject([
    // Of 5 dollars: 0.075, in whole cents.
    { amount: '5.0', developer_fee: '0.07' },
    { developer_fee_percent: '1.5' },
  ]);
  const { length } = service.seen;
  const euros = { source: { ...source, asset: 'eurc' } };
  expect(await payout(euros)).toMatchObject({ fault: 'pair', pointer: '/developer_fee_percent' });
  expect(service.seen).toHaveLength(length);
  // Half a cent is no fee.
  expect(await payout({ ...euros, key: 'none', developerFeePercent: '0.1' })).toMatchObject({
    fault: 'pair',
  });
  expect(service.seen).toHaveLength(length + 1);
});

test('a request whose answer was lost has its effect once', async () => {
  await using opened = await open();
  const { provider, service } = opened;
  service.next({ kind: 'cut' });
  const second = await provider.openCustomer({ ...alice, reference: 'app/user/2' });
  const again = await provider.openCustomer({ ...alice, reference: 'app/user/2' });
  expect(again).toEqual(second);
  const opens = service.seen.filter(
    ({ operation, body }) => operation === 'POST /customers' && body !== undefined,
  );
  // Of two customers: one request, and the same one three times.
  expect(opens.map(({ key }) => key)).toEqual([opens[0]!.key, opens[1]!.key, opens[1]!.key, opens[1]!.key]);
  expect(opens[0]!.key).not.toBe(opens[1]!.key);
});

test('a key that the service forgot a day ago is replaced', async () => {
  await using opened = await open();
  const { provider, service, world } = opened;
  world.pass(25 * 3_600_000);
  expect(await provider.openCustomer(alice)).toHaveProperty('id');
  expect(service.seen.filter(({ operation }) => operation === 'POST /customers')).toHaveLength(3);
  expect(service.faults).toEqual([]);
});

test('the circuit breaker opens for a service that keeps failing', async () => {
  const lines: string[] = [];
  const note = (level: string) => (fields: object, message: string) =>
    void lines.push(`${level} ${message} ${inspect(fields)}`);
  const log: Log = { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') };
  await using opened = await open({ log });
  const { provider, service, customerId } = opened;
  service.next(...Array.from({ length: 6 }, (): Mishap => ({ kind: 'status', status: 500 })));
  await error(provider.customer(customerId));
  await error(provider.customer(customerId));
  const { length } = service.seen;
  expect(String(await error(provider.customer(customerId)))).toContain('circuit breaker');
  expect(service.seen).toHaveLength(length);
  await new Promise((resolve) => setTimeout(resolve, 250));
  // One of the six failures is left.
  await error(provider.customer(customerId));
  await new Promise((resolve) => setTimeout(resolve, 250));
  expect((await provider.customer(customerId))?.id).toBe(customerId);
  expect(lines.some((line) => line.startsWith('warn') && line.includes('circuit breaker'))).toBe(true);
  expect(lines.join('\n')).not.toMatch(/alice|sk-test|customers/i);
});

test('errors and refusals contain no personal data, no number and no key', async () => {
  await using opened = await open({ limits: { failures: 1000 } });
  const { provider, service, customerId } = opened;
  const account = {
    type: 'iban',
    account_number: 'DE89370400440532013000',
    bic: 'COBADEFFXXX',
    country: 'DEU',
  } as const;
  const order = {
    key: 'k',
    customerId,
    ownerKind: 'person',
    ownerName: 'Alice Example',
    currency: 'eur',
    account,
  } as const;
  const said: unknown[] = [];
  for (const [, mishap] of [...passing, ...useless].filter(([, { kind }]) => kind !== 'silence')) {
    service.next(mishap, mishap, mishap);
    said.push(await error(provider.registerBankAccount(order)));
  }
  service.next({ kind: 'status', status: 400 });
  said.push(await provider.registerBankAccount(order));
  expect(said.at(-1)).toMatchObject({ fault: 'data' });
  const text = said.map((each) => inspect(each, { depth: 10, showHidden: true })).join('\n');
  expect(text).not.toMatch(/DE89|COBADEFF|Alice|sk-test/);
});

test('a service that is not there is unavailable, soon', async () => {
  const access = {
    environment: 'sandbox',
    baseUrl: 'http://127.0.0.1:9/v0',
    apiKey: 'sk-test-0123456789',
  } as const;
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const providers = connectBridge([{ ...access, webhookKey: undefined }], {
    clock: { now: () => 0 },
    log,
    limits,
  });
  expect(isUnavailable(await error(providers.find('bridge', 'sandbox')!.customer('some')))).toBe(true);
  expect(providers.find('bridge', 'production')).toBeUndefined();
  expect(providers.find('other', 'sandbox')).toBeUndefined();
});
