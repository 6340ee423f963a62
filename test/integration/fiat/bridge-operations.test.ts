import { createHash, generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { describe, expect, test } from 'vitest';
import { connectBridge } from '../../../src/adapters/bridge/connect.ts';
import { silentLog } from '../../../src/adapters/log.ts';
import { expediteChecks } from '../../../src/domain/money/fiat-customers/customer-snapshot.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import type {
  ExternalFiatAccountResponse,
  FiatDepositAccountResponse,
  KYCStatusListResponse,
  PayoutResponse,
  Wallet,
} from '../../../src/generated/schemas.ts';
import { followDeposits } from '../../../src/jobs/follow-deposits.ts';
import { followFiatCustomers } from '../../../src/jobs/follow-fiat-customers.ts';
import { followFiatDeposits } from '../../../src/jobs/follow-fiat-deposits.ts';
import { providerHints } from '../../../src/server/provider-hints.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { type DatabaseKind, databaseKinds } from '../../support/databases.ts';
import { openBankWorld } from '../../support/fiat/bank-world.ts';
import { testUsdc } from '../../support/fiat/bridge-handlers.ts';
import { type Mishap, openBridgeService } from '../../support/fiat/bridge-service.ts';
import { openOperations, runToEnd } from '../../support/run-operations.ts';
import { runJobs } from '../wallet-actions/run-jobs.ts';

const at = { provider: 'bridge', environment: 'sandbox' } as const;
const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const limits = { timeoutMs: 5000, firstPauseMs: 1, failures: 1000 };
const down: Mishap = { kind: 'status', status: 503 };

/** Operations whose fiat provider is the local one, over REST; its bank pays on the chains of the operations. */
async function open(kind: DatabaseKind) {
  const bank = openBankWorld();
  const service = await openBridgeService(bank.bank, bank.clock);
  const { baseUrl, apiKey } = service;
  const settings = { environment: 'sandbox', baseUrl, apiKey, webhookKey: publicKey } as const;
  const operations = await openOperations(kind, { chains: bank.chains });
  const fiatProviders = connectBridge([settings], { clock: bank.clock, log: silentLog, limits });
  const chains = { find: bank.chains.find, listing: bank.chains.used };
  Object.assign(operations.services, { chains, fiatProviders });
  const context = { services: operations.services, inUnit: inUnitOf(unitsOf(operations.database)) };
  operations.clock.nowMs = bank.clock.now();
  const settle = async (): Promise<void> => {
    for (const job of [followFiatCustomers, followFiatDeposits, followDeposits]) {
      await runToEnd(job(context));
    }
    await runJobs(operations);
  };
  return {
    ...{ operations, service, bank, context, settle },
    async wait(seconds: number) {
      for (let passed = 0; passed < seconds; passed += 10) {
        bank.pass(10_000);
        operations.clock.nowMs = bank.clock.now();
        await settle();
      }
    },
    async events(prefix: string): Promise<readonly string[]> {
      const em = operations.database.orm.em.fork() as SqlEntityManager;
      const rows = await em
        .getKysely<Tables>()
        .selectFrom('outbox_events')
        .select('type')
        .where('type', 'like', `${prefix}%`)
        .orderBy('sequence')
        .execute();
      return rows.map(({ type }) => type);
    },
    async [Symbol.asyncDispose]() {
      await operations[Symbol.asyncDispose]();
      await service[Symbol.asyncDispose]();
      await bank[Symbol.asyncDispose]();
    },
  };
}

type World = Awaited<ReturnType<typeof open>>;

async function makeUser({ operations }: World): Promise<string> {
  const { body } = await operations.run('createUser', {
    body: { linked_accounts: [{ type: 'email', address: `alice-${randomUUID()}@example.com` }] },
  });
  return (body as { id: string }).id;
}

async function statusOf({ operations }: World, userId: string) {
  const { body } = await operations.run('listUserKyc', { path: { user_id: userId } });
  return (body as KYCStatusListResponse).kyc_statuses[0];
}

const submission = {
  ...at,
  client_agreement_id: 'agreement',
  data: {
    ...{ first_name: 'Alice', last_name: 'Example', date_of_birth: '1990-02-03' },
    residential_address: { street_line_1: 'Weg 12', city: 'Berlin', country: 'DEU' },
    identifying_information: [{ type: 'tin', issuing_country: 'DEU', number: '12345678901' }],
  },
};

async function submit(world: World, userId: string) {
  return world.operations.run('submitUserKyc', { path: { user_id: userId }, body: submission });
}

const iban = {
  ...{ ...at, account_owner_name: 'Alice Example', currency: 'eur' },
  account: { type: 'iban', account_number: 'DE89370400440532013000', bic: 'COBADEFFXXX', country: 'DEU' },
};

async function makeWallet({ operations, bank }: World, userId: string): Promise<Wallet> {
  const { body } = await operations.run('createWallet', {
    body: { chain_type: 'ethereum', entity: { type: 'user', id: userId } },
  });
  const wallet = body as Wallet;
  await bank.chains.fund(testUsdc.caip2, {
    address: wallet.address,
    tokenAddress: null,
    rawAmount: 10n ** 18n,
  });
  return wallet;
}

describe.each(databaseKinds)('%s', (kind) => {
  test('a user is verified, registers a bank account, is paid in and pays out', async () => {
    await using world = await open(kind);
    const { operations, bank, service } = world;
    const userId = await makeUser(world);
    const links = await operations.run('initiateUserKycLinks', {
      path: { user_id: userId },
      body: { ...at, redirect_uri: 'https://app.example/done' },
    });
    expect(links).toMatchObject({ status: 200, body: { status: 'not_started' } });
    expect(await submit(world, userId)).toMatchObject({ status: 200, body: { status: 'under_review' } });
    await world.wait(10);
    expect(await statusOf(world, userId)).toMatchObject({ status: 'active', kyc: { status: 'approved' } });
    expect(await world.events('user.kyc')).not.toEqual([]);

    const wallet = await makeWallet(world, userId);
    const account = await operations.run('createUserExternalFiatAccount', {
      path: { user_id: userId },
      body: iban,
    });
    const { external_fiat_account: registered } = account.body as ExternalFiatAccountResponse;
    expect(registered).toMatchObject({ last_4: '3000', currency: 'eur' });
    const opened = await operations.run('createFiatDepositAccount', {
      path: { wallet_id: wallet.id },
      body: { ...at, source: { currency: 'eur' }, destination: { asset: 'usdc', chain: 'base_sepolia' } },
    });
    const { fiat_deposit_account: deposits } = opened.body as FiatDepositAccountResponse;
    expect(deposits).toMatchObject({ status: 'activated' });

    const paid = service.seen.find(
      ({ operation }) => operation.startsWith('POST') && operation.endsWith('virtual_accounts'),
    );
    expect(paid?.body).toEqual({
      source: { currency: 'eur' },
      destination: { payment_rail: 'base', currency: 'usdc', address: wallet.address },
    });
    const em = operations.database.orm.em.fork() as SqlEntityManager;
    const { virtual_account_id: accountId } = await em
      .getKysely<Tables>()
      .selectFrom('fiat_deposit_accounts')
      .select('virtual_account_id')
      .executeTakeFirstOrThrow();
    await bank.controls.receive('sandbox', {
      accountId,
      amount: '500.00',
      reference: 'r',
      outcome: 'completed',
    });
    await world.wait(30);
    expect(await world.events('wallet.deposit_account')).toEqual([
      'wallet.deposit_account.deposit_started',
      'wallet.deposit_account.deposit_completed',
    ]);
    const held = async () =>
      (await bank.chains.find(testUsdc.caip2)!.balances(wallet.address, [testUsdc.tokenAddress]))[0]!;
    const before = await held();
    expect(before).toBeGreaterThan(500_000_000n);

    const payout = await operations.run('createFiatPayout', {
      path: { wallet_id: wallet.id },
      body: {
        source: { asset: 'usdc', chain: 'base_sepolia', amount: '100.5' },
        destination: { fiat_account_id: registered.id },
      },
    });
    expect(payout.status).toBe(200);
    await world.wait(30);
    const action = await operations.run('getWalletAction', {
      path: { wallet_id: wallet.id, action_id: (payout.body as PayoutResponse).id },
      query: {},
    });
    expect(action.body).toMatchObject({ status: 'succeeded' });
    expect(await held()).toBe(before - 100_500_000n);
    expect(await world.events('wallet_action.payout')).toEqual([
      'wallet_action.payout.created',
      'wallet_action.payout.succeeded',
    ]);
    expect(service.faults).toEqual([]);
  });
});

test('a provider that is down refuses nothing for good, and nothing is signed', async () => {
  await using world = await open('sqlite');
  const { operations, service, bank } = world;
  const userId = await makeUser(world);
  service.next(down, down, down);
  const refusal = { status: 503, body: { error: 'the provider `bridge` is unavailable; try again' } };
  expect(await submit(world, userId)).toMatchObject(refusal);
  expect((await submit(world, userId)).status).toBe(200);
  await world.wait(10);
  const wallet = await makeWallet(world, userId);
  const register = () =>
    operations.run('createUserExternalFiatAccount', { path: { user_id: userId }, body: iban });
  service.next(down, down, down);
  expect(await register()).toMatchObject(refusal);
  const { external_fiat_account: account } = (await register()).body as ExternalFiatAccountResponse;
  const { caip2, tokenAddress, decimals } = testUsdc;
  await bank.chains.fund(caip2, {
    address: wallet.address,
    tokenAddress,
    decimals,
    rawAmount: 1_000_000_000n,
  });
  const payout = () =>
    operations.run('createFiatPayout', {
      path: { wallet_id: wallet.id },
      body: {
        source: { asset: 'usdc', chain: 'base_sepolia', amount: '100' },
        destination: { fiat_account_id: account.id },
      },
    });
  service.next(down, down, down);
  expect(await payout()).toMatchObject({ status: 400, body: { code: 'transaction_broadcast_failure' } });
  expect(await world.events('wallet_action')).toEqual([]);
  // While it is down, deposits and customers are asked about again later.
  service.next(down, down, down);
  await world.wait(20);
  expect((await payout()).status).toBe(200);
  expect(service.faults).toEqual([]);
});

test('a payout that comes back fails, although the provider names no transaction of the refund', async () => {
  await using world = await open('sqlite');
  const { operations, service, bank } = world;
  const userId = await makeUser(world);
  await submit(world, userId);
  await world.wait(10);
  const wallet = await makeWallet(world, userId);
  const registered = await operations.run('createUserExternalFiatAccount', {
    path: { user_id: userId },
    // The bank returns what is paid to it.
    body: { ...iban, account: { ...iban.account, account_number: 'DE13370400440532010003' } },
  });
  const { external_fiat_account: account } = registered.body as ExternalFiatAccountResponse;
  const { caip2, tokenAddress, decimals } = testUsdc;
  await bank.chains.fund(caip2, { address: wallet.address, tokenAddress, decimals, rawAmount: 250_000_000n });
  const { body } = await operations.run('createFiatPayout', {
    path: { wallet_id: wallet.id },
    body: {
      source: { asset: 'usdc', chain: 'base_sepolia', amount: '100' },
      destination: { fiat_account_id: account.id },
    },
  });
  await world.wait(40);
  const action = await operations.run('getWalletAction', {
    path: { wallet_id: wallet.id, action_id: (body as PayoutResponse).id },
    query: {},
  });
  expect(action.body).toMatchObject({
    status: 'failed',
    failure_reason: { message: expect.stringContaining('refunded') },
  });
  expect(await bank.chains.find(caip2)!.balances(wallet.address, [tokenAddress])).toEqual([250_000_000n]);
  expect(await world.events('wallet_action.payout')).toEqual([
    'wallet_action.payout.created',
    'wallet_action.payout.failed',
  ]);
  expect(service.faults).toEqual([]);
});

test('the test system works with test networks only', async () => {
  await using world = await open('sqlite');
  const { operations } = world;
  const userId = await makeUser(world);
  await submit(world, userId);
  await world.wait(10);
  const wallet = await makeWallet(world, userId);
  const answer = await operations.run('createFiatDepositAccount', {
    path: { wallet_id: wallet.id },
    body: { ...at, source: { currency: 'eur' }, destination: { asset: 'usdc', chain: 'base' } },
  });
  expect(answer).toMatchObject({ status: 400, body: { code: 'not_supported' } });
  expect(JSON.stringify(answer.body)).toContain('test networks only');
  const production = await operations.run('initiateUserKycLinks', {
    path: { user_id: userId },
    body: { provider: 'bridge', environment: 'production' },
  });
  expect(production).toMatchObject({ status: 400, body: { code: 'not_supported' } });
});

/** The route for notifications, as a server has it. */
async function openRoute({ operations, context }: World) {
  const mount = providerHints({
    fiatProviders: operations.services.fiatProviders,
    clock: { now: () => operations.clock.nowMs },
    log: silentLog,
    newRequestId: () => 'request',
    transport: { plainHttp: true, trustedProxies: [] },
    take: (source, hints) =>
      context.inUnit((em) => expediteChecks(em, source, { hints, nowMs: operations.clock.nowMs })),
  });
  const server = createServer((request, response) => void mount.handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    async post(
      body: string,
      header: string | undefined,
      path = '/provider_hints/bridge/sandbox',
      method = 'POST',
    ) {
      const { status } = await fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        headers: {
          'content-type': 'application/json',
          ...(header === undefined ? {} : { 'x-webhook-signature': header }),
        },
        ...(method === 'GET' ? {} : { body }),
      });
      return status;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function signed(body: string, atMs: number): string {
  const digest = createHash('sha256').update(`${atMs}.${body}`).digest();
  return `t=${atMs},v0=${sign('sha256', digest, privateKey).toString('base64')}`;
}

/** A user whom the provider paused long after it was verified, when it is asked once an hour. */
async function pausedUser(world: World) {
  const userId = await makeUser(world);
  await submit(world, userId);
  await world.wait(10);
  const em = world.operations.database.orm.em.fork() as SqlEntityManager;
  const { customer_id: customerId } = await em
    .getKysely<Tables>()
    .selectFrom('fiat_customers')
    .select('customer_id')
    .executeTakeFirstOrThrow();
  world.bank.pass(100 * 3_600_000);
  world.operations.clock.nowMs = world.bank.clock.now();
  await world.settle();
  await world.bank.controls.decide('sandbox', customerId, { outcome: 'paused' });
  await world.wait(60);
  const updates = async () => (await world.events('user.kyc.updated')).length;
  return { customerId, updates, before: await updates() };
}

test('without notifications, polling finds every change', async () => {
  await using world = await open('sqlite');
  const { updates, before } = await pausedUser(world);
  world.bank.pass(3_600_000);
  await world.wait(10);
  expect(await updates()).toBe(before + 1);
});

test('a notification only has the provider asked sooner', async () => {
  await using world = await open('sqlite');
  await using route = await openRoute(world);
  const { customerId, updates, before } = await pausedUser(world);
  const now = () => world.operations.clock.nowMs;
  const asked = () => world.service.seen.length;
  const count = asked();
  const text = (object: object = {}) =>
    JSON.stringify({ event_category: 'customer', event_object_id: customerId, event_object: object });

  // Not signed, signed by another, changed, old, about another system, or too long.
  const valid = signed(text(), now());
  expect(await route.post(text(), undefined)).toBe(400);
  expect(await route.post(text(), valid.replace(/v0=..../, 'v0=AAAA'))).toBe(400);
  expect(await route.post(text({ status: 'active' }), valid)).toBe(400);
  expect(await route.post(text(), signed(text(), now() - 600_001))).toBe(400);
  expect(await route.post(text(), valid, '/provider_hints/bridge/production')).toBe(404);
  expect(await route.post(text(), valid, '/provider_hints/other/sandbox')).toBe(404);
  expect(await route.post(text(), valid, '/provider_hints/bridge/sandbox', 'GET')).toBe(405);
  expect(await route.post('x'.repeat(70_000), valid)).toBe(413);
  // Of customers that are not ours, and of other things.
  const foreign = JSON.stringify({ event_category: 'customer', event_object_id: 'another' });
  expect(await route.post(foreign, signed(foreign, now()))).toBe(200);
  const transfer = JSON.stringify({ event_category: 'transfer', event_object_id: customerId });
  expect(await route.post(transfer, signed(transfer, now()))).toBe(200);
  await world.settle();
  expect(asked()).toBe(count);

  // It says something else than the provider does when it is asked.
  const lie = text({ status: 'offboarded' });
  expect(await route.post(lie, signed(lie, now()))).toBe(200);
  expect(await route.post(lie, signed(lie, now()))).toBe(200);
  await world.settle();
  expect(asked()).toBe(count + 1);
  expect(await updates()).toBe(before + 1);
  // The same one again has the provider asked again, and changes nothing.
  expect(await route.post(lie, signed(lie, now()))).toBe(200);
  await world.settle();
  expect(await updates()).toBe(before + 1);
});
