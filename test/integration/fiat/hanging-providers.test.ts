import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { CardEntity } from '../../../src/domain/money/cards/card.entity.ts';
import { FiatCustomerEntity } from '../../../src/domain/money/fiat-customers/fiat-customer.entity.ts';
import { FiatDepositEntity } from '../../../src/domain/money/fiat-deposits/fiat-deposit.entity.ts';
import type { Card, FiatDepositAccount, Wallet } from '../../../src/generated/schemas.ts';
import { followFiatCustomers } from '../../../src/jobs/follow-fiat-customers.ts';
import { followFiatDeposits } from '../../../src/jobs/follow-fiat-deposits.ts';
import type { JobContext } from '../../../src/jobs/job-context.ts';
import { keepCards } from '../../../src/jobs/keep-cards.ts';
import type { Job } from '../../../src/jobs/runner.ts';
import type { FiatEnvironment } from '../../../src/ports/fiat.ts';
import {
  openSimulatedChains,
  type SimulatedChains,
} from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import type { FiatControls } from '../../../src/sandbox/simulated/fiat/providers.ts';
import { fixedPrices } from '../../../src/sandbox/simulated/prices.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';

const cardChains = { sandbox: 'eip155:84532', production: 'eip155:8453' } as const;

/** A call of the provider in `sandbox` that does not answer. That in `production` does. */
let hung: PropertyKey | undefined;
let reached = Promise.withResolvers<void>();
let released = Promise.withResolvers<void>();

function hanging<Provider extends object>(provider: Provider): Provider {
  return new Proxy(provider, {
    get: (target, name) =>
      name !== hung
        ? Reflect.get(target, name)
        : () => {
            reached.resolve();
            return released.promise.then(() => Promise.reject(new Error('no answer')));
          },
  });
}

describe.each(databaseKinds)('on %s, a provider that hangs delays no other', (kind) => {
  let operations: TestOperations;
  let chains: SimulatedChains;
  let fiat: FiatControls;
  beforeAll(async () => {
    const clock = { now: () => operations.clock.nowMs };
    chains = openSimulatedChains({ file: ':memory:', clock, confirmAfterMs: 0 });
    operations = await openOperations(kind, { chains });
    const office = {
      ...{ ids: operations.services.ids, prices: fixedPrices, supports: chains.has },
      pageOf: (token: string) => `https://127.0.0.1/${token}`,
      environments: ['sandbox', 'production'] as const,
    };
    const { providers, controls } = chains.fiat(office);
    const { issuers } = chains.cards({ ...office, secret: () => Buffer.alloc(32, 1) });
    fiat = controls;
    const hangs = <Found extends object>(environment: string, found: Found | undefined) =>
      found !== undefined && environment === 'sandbox' ? hanging(found) : found;
    Object.assign(operations.services, {
      fiatProviders: {
        find: (name: string, environment: FiatEnvironment) =>
          hangs(environment, providers.find(name, environment)),
      },
      cardIssuers: {
        find: (environment: FiatEnvironment) => hangs(environment, issuers.find(environment)),
      },
    });
  });
  afterEach(() => {
    hung = undefined;
    reached = Promise.withResolvers();
    released = Promise.withResolvers();
    vi.useRealTimers();
  });
  afterAll(async () => {
    await operations[Symbol.asyncDispose]();
    await chains.close();
  });

  const context = (): JobContext => ({
    services: operations.services,
    inUnit: inUnitOf(unitsOf(operations.database)),
  });

  /** A verified user with a wallet. */
  async function makeHolder(environment: FiatEnvironment) {
    const made = await operations.run('createUser', {
      body: { linked_accounts: [{ type: 'email', address: `hung-${randomUUID()}@example.com` }] },
    });
    const { id: userId } = made.body as { id: string };
    const as = { userId, sessionId: 'login' };
    const { body: wallet } = await operations.run('createWallet', {
      body: { chain_type: 'ethereum', owner: { user_id: userId }, entity: { type: 'user', id: userId } },
    });
    await operations.run('createCardCustomer', { body: { environment }, as });
    const accepts = { accept_bank_terms: true, accept_electronic_disclosure: true };
    await operations.run('updateCardCustomer', { body: { environment, ...accepts }, as });
    const customer = () =>
      operations.database.orm.em.fork().findOneOrFail(FiatCustomerEntity, { entityId: userId });
    const { customerId } = await customer();
    await fiat.decide(environment, customerId, { outcome: 'approved' });
    return { as, wallet: wallet as Wallet, customer };
  }

  /** Runs a batch during which the provider hangs, then one for what became due meanwhile. */
  async function runBeside(make: (context: JobContext) => Job, call: string, meanwhile: () => Promise<void>) {
    const job = make(context());
    hung = call;
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const first = job.run(() => undefined);
    await reached.promise;
    await vi.advanceTimersByTimeAsync(1_000);
    await first;
    await meanwhile();
    const second = job.run(() => undefined);
    return async () => {
      released.resolve();
      await second;
      await job.stop?.();
    };
  }

  test('customers of another provider are followed while one hangs', async () => {
    await makeHolder('sandbox');
    operations.clock.nowMs += 3_600_000;
    let customer: Awaited<ReturnType<typeof makeHolder>>['customer'] | undefined;
    const end = await runBeside(followFiatCustomers, 'customer', async () => {
      ({ customer } = await makeHolder('production'));
      operations.clock.nowMs += 3_600_000;
    });
    await expect.poll(async () => (await customer!()).checkedAtMs).toBe(operations.clock.nowMs);
    await end();
  });

  test('cards of another issuer are updated while one hangs', async () => {
    const archivedCard = async (environment: FiatEnvironment): Promise<string> => {
      const { as, wallet } = await makeHolder(environment);
      const { status, body } = await operations.run('createCard', {
        body: { wallet_id: wallet.id, asset: 'usdc', chain_id: cardChains[environment], environment },
        as,
      });
      expect({ status, body }).toMatchObject({ status: 200 });
      await operations.run('archiveWallet', { path: { wallet_id: wallet.id } });
      return (body as Card).id;
    };
    await archivedCard('sandbox');
    let id = '';
    const end = await runBeside(keepCards, 'change', async () => {
      id = await archivedCard('production');
    });
    const card = () => operations.database.orm.em.fork().findOneOrFail(CardEntity, { id });
    await expect.poll(async () => (await card()).nextCheckAtMs).toBeNull();
    await end();
  });

  test.each(['depositsAfter', 'closeVirtualAccount'])('in `follow-fiat-deposits` at `%s`', async (call) => {
    const openAccount = async (environment: FiatEnvironment) => {
      const { wallet } = await makeHolder(environment);
      // The approval is known then.
      operations.clock.nowMs += 3_600_000;
      await followFiatCustomers(context()).run(() => undefined);
      const { status, body } = await operations.run('createFiatDepositAccount', {
        path: { wallet_id: wallet.id },
        body: {
          ...{ provider: 'bridge', environment, source: { currency: 'usd' } },
          destination: { asset: 'usdc', chain: 'base' },
        },
      });
      expect({ status, body }).toMatchObject({ status: 200 });
      return { wallet, account: (body as { fiat_deposit_account: FiatDepositAccount }).fiat_deposit_account };
    };
    const { wallet } = await openAccount('sandbox');
    await operations.run('archiveWallet', { path: { wallet_id: wallet.id } });
    let accountId = '';
    const end = await runBeside(followFiatDeposits, call, async () => {
      const { account } = await openAccount('production');
      accountId = account.id;
      const em = operations.database.orm.em.fork();
      const rows = await em.execute(
        'select virtual_account_id as id from fiat_deposit_accounts where id = ?',
        [accountId],
      );
      const order = { reference: call, outcome: 'completed', senderName: 'Alice Example' } as const;
      await fiat.receive('production', { accountId: rows[0]!.id as string, amount: '100', ...order });
    });
    const deposits = () => operations.database.orm.em.fork().find(FiatDepositEntity, { accountId });
    await expect.poll(deposits).toMatchObject([{ amount: '100.00' }]);
    await end();
  });
});
