import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { noCardIssuers, ProviderUnavailableError } from '../../../src/adapters/outside-services.ts';
import { CardEntity } from '../../../src/domain/money/cards/card.entity.ts';
import { storeReport } from '../../../src/domain/money/cards/update-card.ts';
import { FiatCustomerEntity } from '../../../src/domain/money/fiat-customers/fiat-customer.entity.ts';
import type { Card, Wallet } from '../../../src/generated/schemas.ts';
import { keepCards } from '../../../src/jobs/keep-cards.ts';
import type { CardIssuer, CardPayment } from '../../../src/ports/cards.ts';
import {
  openSimulatedChains,
  type SimulatedChains,
} from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import type { FiatControls } from '../../../src/sandbox/simulated/fiat/providers.ts';
import { fixedPrices } from '../../../src/sandbox/simulated/prices.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';

const environment = 'sandbox';

describe.each(databaseKinds)('cards on %s', (kind) => {
  let operations: TestOperations;
  let chains: SimulatedChains;
  let fiat: FiatControls;
  let issuer: CardIssuer;
  /** Replaces methods of the issuer. */
  let override: Partial<CardIssuer> = {};
  beforeAll(async () => {
    const clock = { now: () => operations.clock.nowMs };
    chains = openSimulatedChains({ file: ':memory:', clock, confirmAfterMs: 0 });
    operations = await openOperations(kind, { chains });
    const office = {
      ...{ ids: operations.services.ids, prices: fixedPrices, supports: chains.has },
      ...{ pageOf: (token: string) => `https://127.0.0.1/${token}`, environments: [environment] as const },
    };
    const { providers, controls } = chains.fiat(office);
    const { issuers } = chains.cards({ ...office, secret: () => Buffer.alloc(32, 1) });
    fiat = controls;
    issuer = issuers.find(environment)!;
    const find = (name: string) => (name === environment ? { ...issuer, ...override } : undefined);
    Object.assign(operations.services, { fiatProviders: providers, cardIssuers: { find } });
  });
  afterAll(async () => {
    await operations[Symbol.asyncDispose]();
    await chains.close();
  });

  async function makeHolder() {
    const { body } = await operations.run('createUser', {
      body: { linked_accounts: [{ type: 'email', address: `card-${randomUUID()}@example.com` }] },
    });
    const { id: userId } = body as { id: string };
    const as = { userId, sessionId: 'login' };
    const made = await operations.run('createWallet', {
      body: { chain_type: 'ethereum', owner: { user_id: userId } },
    });
    const wallet = made.body as Wallet;
    await operations.run('createCardCustomer', { body: { environment }, as });
    const accepts = { accept_bank_terms: true, accept_electronic_disclosure: true };
    await operations.run('updateCardCustomer', { body: { environment, ...accepts }, as });
    const em = operations.database.orm.em.fork();
    const { customerId } = await em.findOneOrFail(FiatCustomerEntity, { entityId: userId });
    await fiat.decide(environment, customerId, { outcome: 'approved' });
    return { as, wallet, create: () => operations.run('createCard', { body: cardFor(wallet), as }) };
  }

  const cardFor = ({ id }: Wallet) => ({
    ...{ wallet_id: id, asset: 'usdc', chain_id: 'eip155:84532', environment },
  });

  const keep = async () => {
    const inUnit = inUnitOf(unitsOf(operations.database));
    await keepCards({ services: operations.services, inUnit }).run(() => undefined);
  };
  const stored = (id: string) => operations.database.orm.em.fork().findOneOrFail(CardEntity, { id });

  test('of eleven that are asked for at once ten are created', async () => {
    const { create, as } = await makeHolder();
    const answers = await Promise.all(Array.from({ length: 11 }, create));
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([...Array(10).fill(200), 400]);
    expect(answers.find(({ status }) => status === 400)!.body).toMatchObject({ code: 'invalid_request' });
    const { body } = await operations.run('listCards', { query: { environment }, as });
    expect((body as { data: Card[] }).data).toHaveLength(10);
  });

  test('are replaced once, by however many requests at once, and have one successor at the issuer', async () => {
    const { create, as } = await makeHolder();
    const { id } = (await create()).body as Card;
    const replace = () =>
      operations.run('replaceCard', {
        path: { card_id: id },
        body: { environment, replacement_reason: 'lost' },
        as,
      });
    const answers = await Promise.all([replace(), replace(), replace()]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400]);
    const { body } = await operations.run('listCards', { query: { environment }, as });
    const statuses = (body as { data: Card[] }).data.map(({ status }) => status);
    expect(statuses.sort()).toEqual(['active', 'canceled']);
    expect(await stored(id)).toMatchObject({ status: 'canceled', cancellationReason: 'lost' });
  });

  test('end at the issuer when their wallet is archived, also if the issuer is down at first', async () => {
    const { create, wallet } = await makeHolder();
    const card = (await create()).body as Card;
    await operations.run('archiveWallet', { path: { wallet_id: wallet.id } });
    override = { change: () => Promise.reject(new ProviderUnavailableError('down')) };
    await keep();
    override = {};
    expect(await stored(card.id)).toMatchObject({ status: 'canceled', nextCheckAtMs: expect.any(Number) });
    const atIssuer = () => issuer.change(card.provider_id, { status: 'inactive' });
    expect(await atIssuer()).toMatchObject({ status: 'inactive' });
    operations.clock.nowMs += 60_000;
    await keep();
    expect(await atIssuer()).toMatchObject({ fault: 'state' });
    expect(await stored(card.id)).toMatchObject({ nextCheckAtMs: null });
  });

  test('of a frozen user end inactive at the issuer, though it hears of an older change later and the server dies', async () => {
    const { create, as } = await makeHolder();
    const card = (await create()).body as Card;
    const path = { card_id: card.id };
    await operations.run('updateCard', { path, body: { environment, status: 'inactive' }, as });
    const heard = Promise.withResolvers<undefined>();
    const asked = Promise.withResolvers<undefined>();
    override = {
      change: async (id, change) => {
        asked.resolve(undefined);
        await heard.promise;
        await issuer.change(id, change);
        throw new ProviderUnavailableError('the process died before it stored this');
      },
    };
    const activating = operations.run('updateCard', { path, body: { environment, status: 'active' }, as });
    await asked.promise;
    override = {};
    await operations.run('freezeUser', { path: { user_id: as.userId } });
    await keep();
    heard.resolve(undefined);
    expect((await activating).status).toBe(503);
    // Without a change, the issuer answers with the status that the card has there.
    const atIssuer = () => issuer.change(card.provider_id, {});
    expect(await atIssuer()).toMatchObject({ status: 'active' });
    operations.clock.nowMs += 60_000;
    await keep();
    expect(await atIssuer()).toMatchObject({ status: 'inactive' });
    // No request from before the freeze can still be on its way: the reports end.
    for (let minute = 0; minute < 10; minute += 1) {
      operations.clock.nowMs += 60_000;
      await keep();
    }
    expect(await stored(card.id)).toMatchObject({ nextCheckAtMs: null });
  });

  test('keep the newest report of the issuer', async () => {
    const { create } = await makeHolder();
    const card = await stored(((await create()).body as Card).id);
    const report = { id: '', brand: '', last4: '', expMonth: 1, expYear: 2030 };
    storeReport(card, { ...report, status: 'inactive', revision: 3 });
    storeReport(card, { ...report, status: 'active', revision: 2 });
    expect(card).toMatchObject({ status: 'inactive', revision: 3 });
  });

  test('are not supported without an issuer, and a month of too many transactions is refused', async () => {
    const { create, as, wallet } = await makeHolder();
    const { id } = (await create()).body as Card;
    const path = { card_id: id };
    const payment: CardPayment = {
      ...{ id: 'p', kind: 'purchase', status: 'posted', cents: 1n, currency: 'usd', merchant: null },
      ...{ createdAtMs: operations.clock.nowMs, postedAtMs: operations.clock.nowMs },
    };
    const period = new Date(operations.clock.nowMs).toISOString().slice(0, 7);
    const statement = { path: { ...path, period }, query: { environment }, as };
    override = { posted: async (_, { limit }) => Array(limit).fill(payment) };
    expect(await operations.run('getCardStatement', statement)).toMatchObject({
      status: 400,
      body: { code: 'invalid_request' },
    });
    override = { change: () => Promise.reject(new ProviderUnavailableError('down')) };
    const freeze = { path, body: { environment, status: 'inactive' }, as };
    expect(await operations.run('updateCard', freeze)).toMatchObject({
      status: 503,
      body: { error: expect.stringContaining('unavailable') },
    });
    override = {};

    const { cardIssuers } = operations.services;
    Object.assign(operations.services, { cardIssuers: noCardIssuers });
    const query = { environment };
    const asked = [
      ['getCardConfig', { path: { app_id: operations.app.id }, query }],
      ['getCardCustomer', { query, as }],
      ['createCardCustomer', { body: query, as }],
      ['updateCardCustomer', { body: query, as }],
      ['createCard', { body: cardFor(wallet), as }],
      ['listCards', { query, as }],
      ['updateCard', freeze],
      ['replaceCard', { path, body: { ...query, replacement_reason: 'lost' }, as }],
      ['listCardTransactions', { path, query, as }],
      ['createCardEphemeralKey', { path, body: { ...query, nonce: 'nonce-of-a-page' }, as }],
      ['getCardStatement', statement],
    ] as const;
    for (const [operation, input] of asked) {
      expect(await operations.run(operation, input), operation).toMatchObject({
        status: 400,
        body: { code: 'not_supported' },
      });
    }
    Object.assign(operations.services, { cardIssuers });
  });
});
