import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Log } from '../../src/ports/runtime.ts';
import { call, refusal } from '../support/call.ts';
import {
  approve,
  cardFor,
  cardHolder,
  centsOf,
  chainId,
  encryptPin,
  environment,
  type Holder,
  makeReady,
  newHolder,
  newUser,
  tokenOf,
} from '../support/cards/holders.ts';
import { askControl, configureUser, control } from '../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

interface Payment {
  readonly id: string;
  readonly card_id: string;
  readonly status: string;
  readonly amount: string;
  readonly decline_reason: string | null;
  readonly transaction_hash: string | null;
}

let references = 0;

function pay(cardId: string, amount: string, more: object = {}): Promise<Payment> {
  references += 1;
  const reference = `order-${references}`;
  return control<Payment>(sandbox, 'POST', 'card_authorizations', {
    ...{ card_id: cardId, amount, reference, merchant_name: 'Corner Bakery' },
    ...more,
  });
}

function settle(id: string, verb: 'capture' | 'reverse' | 'expire' | 'refund', body?: object) {
  return askControl(sandbox, 'POST', `card_authorizations/${id}/${verb}`, body) as Promise<{
    status: number;
    body: Payment & { code?: string };
  }>;
}

async function transactionsOf({ as }: Pick<Holder, 'as'>, cardId: string, query: object = {}) {
  const answer = await call(
    sandbox,
    'listCardTransactions',
    { path: { card_id: cardId }, query: { environment, ...query } },
    as,
  );
  return answer.body;
}

/** What the card issuer holds on the chain, in cents. */
async function issuerHolds(): Promise<bigint> {
  const { data } = await control<{ data: { caip2: string; held: Record<string, string> }[] }>(
    sandbox,
    'GET',
    'books',
  );
  const held = data
    .filter(({ caip2 }) => caip2 === chainId)
    .map(({ held: { cards = '0' } }) => BigInt(cards));
  return held.reduce((sum, amount) => sum + amount, 0n) / 10_000n;
}

describe('the customer', () => {
  const statusOf = async (as: Holder['as']) =>
    (await call(sandbox, 'getCardCustomer', { query: { environment } }, as)).body.data;
  const decide = (userId: string, decision: object) =>
    control(sandbox, 'POST', 'verifications', { user_id: userId, environment, ...decision });

  test('the customer accepts the disclosure and the terms, is verified, and is ready', async () => {
    const { userId, as } = await newUser(sandbox);
    const accept = async (body: object) =>
      (await call(sandbox, 'updateCardCustomer', { body: { environment, ...body } }, as)).body.data;
    expect(await statusOf(as)).toEqual({ status: 'not_created' });
    expect(await refusal(sandbox, 'updateCardCustomer', { body: { environment } }, as)).toMatchObject({
      status: 404,
      body: { error: 'Card customer not found' },
    });
    const created = await call(sandbox, 'createCardCustomer', { body: { environment } }, as);
    expect(created.body.data).toEqual({
      status: 'electronic_disclosure_required',
      disclosure_url: expect.stringMatching(/^https:/),
    });
    expect(await accept({ accept_electronic_disclosure: false })).toEqual(created.body.data);
    const bank = await accept({ accept_electronic_disclosure: true });
    expect(bank).toMatchObject({
      status: 'bank_terms_required',
      bank_info: { agreements: [{ id: 'cardholder-agreement-1' }] },
    });
    const terms = await accept({ accept_bank_terms: true });
    expect(terms).toEqual({
      status: 'provider_terms_required',
      tos_url: expect.stringMatching(/^https:.*#terms$/),
    });
    await decide(userId, { outcome: 'terms_accepted' });
    expect(await statusOf(as)).toEqual({
      status: 'kyc_required',
      kyc_url: expect.stringMatching(/^https:.*#verification$/),
    });
    await decide(userId, { outcome: 'under_review' });
    expect(await statusOf(as)).toEqual({ status: 'under_review' });
    await decide(userId, { outcome: 'rejected', reasons: ['The passport is not readable.'] });
    expect(await statusOf(as)).toEqual({
      status: 'rejected',
      rejection_reasons: [{ reason: 'The passport is not readable.' }],
    });
    const waiting = [{ name: 'cards', status: 'incomplete' }];
    await decide(userId, { outcome: 'approved', endorsements: waiting });
    expect(await statusOf(as)).toEqual({ status: 'pending' });
    await decide(userId, { outcome: 'approved', endorsements: [{ name: 'cards', status: 'approved' }] });
    expect(await statusOf(as)).toEqual({ status: 'ready' });
    // Created again, nothing is asked again, in this environment.
    const again = await call(sandbox, 'createCardCustomer', { body: { environment } }, as);
    expect(again.body.data).toEqual({ status: 'ready' });
    const production = await call(sandbox, 'getCardCustomer', { query: { environment: 'production' } }, as);
    expect(production.body.data).toEqual({ status: 'not_created' });
    await decide(userId, { outcome: 'paused' });
    expect(await statusOf(as)).toEqual({ status: 'error' });
    await decide(userId, { outcome: 'offboarded' });
    expect(await statusOf(as)).toEqual({ status: 'rejected' });
  });

  test('the customer must have an email account', async () => {
    const { as } = await newUser(sandbox, { type: 'custom_auth', custom_user_id: 'without-email' });
    const refused = await refusal(sandbox, 'createCardCustomer', { body: { environment } }, as);
    expect(refused).toMatchObject({ status: 400, body: { code: 'invalid_state' } });
  });
});

describe('a card', () => {
  test('a card is issued to a ready customer for an own wallet, and listed to its user alone', async () => {
    const [holder, other] = [await newHolder(sandbox), await newHolder(sandbox)];
    const early = await refusal(sandbox, 'createCard', cardFor(holder.wallet), holder.as);
    expect(early).toMatchObject({ status: 400, body: { code: 'invalid_state' } });
    await makeReady(sandbox, holder);
    await makeReady(sandbox, other);

    const keyed = { ...holder.as, idempotencyKey: 'first-card' };
    const { body: card } = await call(sandbox, 'createCard', cardFor(holder.wallet), keyed);
    expect(card).toMatchObject({
      ...{ wallet_id: holder.wallet.id, chain_id: chainId, asset: 'usdc', status: 'active', brand: 'visa' },
      ...{ last4: expect.stringMatching(/^\d{4}$/), exp_year: 2030, balance_formatted: '0' },
    });
    const repeated = await call(sandbox, 'createCard', cardFor(holder.wallet), keyed);
    expect(repeated.body).toEqual(card);
    // The key of another user is that user's own: it does not repeat this response.
    const foreign = await refusal(sandbox, 'createCard', cardFor(holder.wallet), {
      ...other.as,
      idempotencyKey: 'first-card',
    });
    expect(foreign).toMatchObject({ status: 404, body: { error: 'Wallet not found' } });

    const { body: second } = await call(sandbox, 'createCard', cardFor(holder.wallet), holder.as);
    const list = async (as: Holder['as'], query: object = {}) =>
      (await call(sandbox, 'listCards', { query: { environment, ...query } }, as)).body;
    const page = await list(holder.as, { limit: 1 });
    const next = await list(holder.as, { limit: 1, cursor: page.next_cursor });
    expect([...page.data, ...next.data].map(({ id }) => id).sort()).toEqual([card.id, second.id].sort());
    expect(next.next_cursor).toBeNull();
    expect(await list(other.as)).toEqual({ data: [], next_cursor: null });
    expect((await list(holder.as, { environment: 'production' })).data).toEqual([]);
    const cursor = { query: { environment, cursor: card.id } };
    expect(await refusal(sandbox, 'listCards', cursor, other.as)).toMatchObject({ status: 400 });

    const path = { card_id: card.id };
    const asked = [
      ['updateCard', { path, body: { environment, status: 'inactive' } }],
      ['replaceCard', { path, body: { environment, replacement_reason: 'lost' } }],
      ['listCardTransactions', { path, query: { environment } }],
      ['createCardEphemeralKey', { path, body: { environment, nonce: 'nonce-of-a-page' } }],
      ['getCardStatement', { path: { ...path, period: '2026-01' }, query: { environment } }],
    ] as const;
    for (const [id, input] of asked) {
      expect(await refusal(sandbox, id, input, other.as), id).toMatchObject({ status: 404 });
      const secret = await refusal(sandbox, id, input);
      expect(secret, id).toMatchObject({ status: 401, body: { code: 'missing_or_invalid_token' } });
    }
    await configureUser(sandbox, holder.userId, { frozen: true });
    // The token lives to its end.
    const frozen = await call(sandbox, 'listCards', { query: { environment } }, holder.as);
    expect(frozen.body.data).toHaveLength(2);
  });

  test.each([
    ['/chain_id', { chain_id: 'eip155:999999' }],
    ['/chain_id', { chain_id: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1' }],
    ['/asset', { asset: 'eth' }],
  ])('a card is not issued for what the issuer does not serve: %s %j', async (pointer, change) => {
    const holder = await newHolder(sandbox);
    const { body } = cardFor(holder.wallet);
    const refused = await refusal(sandbox, 'createCard', { body: { ...body, ...change } }, holder.as);
    expect(refused).toMatchObject({
      status: 400,
      body: { code: 'not_supported', error: expect.stringContaining(pointer) },
    });
  });

  test('a card is not issued for a wallet that the user cannot sign for alone', async () => {
    const holder = await newHolder(sandbox);
    await makeReady(sandbox, holder);
    const { userId: secondId } = await newUser(sandbox);
    const { body: quorum } = await call(sandbox, 'createKeyQuorum', {
      body: { user_ids: [holder.userId, secondId], authorization_threshold: 2 },
    });
    const { body: shared } = await call(sandbox, 'createWallet', {
      body: { chain_type: 'ethereum', owner_id: quorum.id },
    });
    const { body: nobodys } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    for (const wallet of [shared, nobodys, { id: 'absent' }]) {
      expect(await refusal(sandbox, 'createCard', cardFor(wallet), holder.as)).toMatchObject({ status: 404 });
    }
  });

  test('a card is frozen, unfrozen, canceled and replaced', async () => {
    const holder = await newHolder(sandbox);
    await makeReady(sandbox, holder);
    const { body: card } = await call(sandbox, 'createCard', cardFor(holder.wallet), holder.as);
    const path = { card_id: card.id };
    const update = async (body: object) =>
      (await call(sandbox, 'updateCard', { path, body: { environment, ...body } }, holder.as)).body.status;
    const refused = async (body: object) =>
      (await refusal(sandbox, 'updateCard', { path, body: { environment, ...body } }, holder.as)).body.code;

    expect(await update({ status: 'inactive' })).toBe('inactive');
    expect((await pay(card.id, '1.00')).decline_reason).toBe('card_inactive');
    expect(await update({ status: 'active' })).toBe('active');
    expect(await refused({})).toBe('invalid_data');
    expect(await refused({ cancellation_reason: 'lost' })).toBe('invalid_data');
    expect(await refused({ status: 'canceled', pin: { encrypted_number: 'AAAA' } })).toBe('invalid_data');
    expect(await refused({ pin: { encrypted_number: 'AAAA' } })).toBe('invalid_data');

    const replacement = { path, body: { environment, replacement_reason: 'stolen' } } as const;
    const { body: newer } = await call(sandbox, 'replaceCard', replacement, holder.as);
    expect(newer).toMatchObject({ status: 'active', wallet_id: holder.wallet.id });
    expect(newer.last4).not.toBe(card.last4);
    expect((await refusal(sandbox, 'replaceCard', replacement, holder.as)).body.code).toBe('invalid_state');
    const { body: list } = await call(sandbox, 'listCards', { query: { environment } }, holder.as);
    expect(new Map(list.data.map(({ id, status }) => [id, status]))).toEqual(
      new Map([
        [card.id, 'canceled'],
        [newer.id, 'active'],
      ]),
    );
    expect(await refused({ status: 'active' })).toBe('invalid_state');
    expect((await pay(card.id, '1.00')).decline_reason).toBe('card_canceled');
    const key = { path, body: { environment, nonce: 'nonce-of-a-page' } };
    const keyRefused = await refusal(sandbox, 'createCardEphemeralKey', key, holder.as);
    expect(keyRefused.body.code).toBe('invalid_state');
    const unverified = { user_id: holder.userId, environment, outcome: 'paused' };
    await control(sandbox, 'POST', 'verifications', unverified);
    const frozen = { path: { card_id: newer.id }, body: { environment, status: 'inactive' } } as const;
    await call(sandbox, 'updateCard', frozen, holder.as);
    const unfreeze = { ...frozen, body: { environment, status: 'active' } };
    expect((await refusal(sandbox, 'updateCard', unfreeze, holder.as)).body.code).toBe('invalid_state');
  });
});

describe('a payment', () => {
  test('a payment takes the money from the wallet, and captures, reversals and refunds give back what is left', async () => {
    const holder = await cardHolder(sandbox, 10_000n);
    const { card, wallet } = holder;
    const before = await issuerHolds();
    const held = async () => [await centsOf(sandbox, wallet.address), (await issuerHolds()) - before];

    const paid = await pay(card.id, '40.00', { reference: 'order-a' });
    expect(paid).toMatchObject({
      status: 'pending',
      amount: '40.00',
      card_id: card.id,
      decline_reason: null,
    });
    expect(await pay(card.id, '40.00', { reference: 'order-a' })).toEqual(paid);
    expect(await held()).toEqual([6_000n, 4_000n]);
    expect((await settle(paid.id, 'capture', { amount: '48.01' })).body.code).toBe('invalid_data');
    expect((await settle(paid.id, 'capture', { amount: '0.00' })).body.code).toBe('invalid_data');
    const captured = await settle(paid.id, 'capture', { amount: '30.00' });
    expect(captured.body).toMatchObject({ status: 'posted', amount: '30.00' });
    expect(await settle(paid.id, 'capture', { amount: '30.00' })).toEqual(captured);
    expect(await held()).toEqual([7_000n, 3_000n]);
    expect((await settle(paid.id, 'reverse')).body.code).toBe('invalid_state');

    const some = await settle(paid.id, 'refund', { amount: '10.00', reference: 'return-1' });
    expect(some.body).toMatchObject({ status: 'posted', amount: '-10.00' });
    expect(await settle(paid.id, 'refund', { reference: 'return-1' })).toEqual(some);
    expect((await settle(paid.id, 'refund', { amount: '20.01', reference: 'x' })).status).toBe(400);
    await settle(paid.id, 'refund', { reference: 'return-2' });
    expect(await held()).toEqual([10_000n, 0n]);

    const tipped = await pay(card.id, '20.00');
    await settle(tipped.id, 'capture', { amount: '24.00' });
    expect(await held()).toEqual([7_600n, 2_400n]);
    // 100.00 were approved; 40.00, 20.00 and 4.00 are taken.
    expect((await pay(card.id, '36.01')).decline_reason).toBe('insufficient_allowance');
    await approve(sandbox, holder, 1_000_000n);
    expect((await pay(card.id, '76.01')).decline_reason).toBe('insufficient_funds');
    const reversed = await pay(card.id, '50.00');
    expect((await settle(reversed.id, 'reverse')).body.status).toBe('reversed');
    expect((await settle(reversed.id, 'reverse')).body.status).toBe('reversed');
    expect((await settle(reversed.id, 'capture', {})).body.code).toBe('invalid_state');
    const expired = await pay(card.id, '50.00');
    expect((await settle(expired.id, 'expire')).body.status).toBe('expired');
    expect((await settle('absent', 'expire')).status).toBe(404);
    expect((await pay(card.id, '1.00', { outcome: 'declined' })).decline_reason).toBe('declined_by_issuer');
    expect((await pay(card.id, '5000.01')).decline_reason).toBe('limit_exceeded');
    expect(await held()).toEqual([7_600n, 2_400n]);

    const { data } = await transactionsOf(holder, card.id);
    expect(data.map(({ status, amount }) => [status, amount])).toEqual([
      ...[
        ['declined', 500_001],
        ['declined', 100],
        ['expired', 5_000],
        ['reversed', 5_000],
      ],
      ...[
        ['declined', 7_601],
        ['declined', 3_601],
        ['posted', 2_400],
        ['posted', -2_000],
      ],
      ...[
        ['posted', -1_000],
        ['posted', 3_000],
      ],
    ]);
    expect(data.at(-1)).toMatchObject({
      currency: 'usd',
      merchant: { name: 'Corner Bakery' },
      dispute: null,
    });
    const first = await transactionsOf(holder, card.id, { limit: 4 });
    const second = await transactionsOf(holder, card.id, { limit: 100, cursor: first.next_cursor });
    expect([...first.data, ...second.data]).toEqual(data);
    expect(second.next_cursor).toBeNull();
    const bad = { path: { card_id: card.id }, query: { environment, cursor: 'abc' } };
    expect((await refusal(sandbox, 'listCardTransactions', bad, holder.as)).body.code).toBe('invalid_data');
  });

  test('a payment with a PIN needs the right one', async () => {
    const holder = await cardHolder(sandbox, 1_000n);
    const path = { card_id: holder.card.id };
    const setPin = async (pin: string) => {
      const { body: config } = await call(sandbox, 'getCardConfig', {
        path: { app_id: sandbox.appId },
        query: { environment },
      });
      const encrypted_number = await encryptPin(config.data.publishable_key, pin);
      return call(
        sandbox,
        'updateCard',
        { path, body: { environment, pin: { encrypted_number } } },
        holder.as,
      );
    };
    const withPin = async (pin: string) => (await pay(holder.card.id, '1.00', { pin })).decline_reason;
    await setPin('4821');
    expect(await withPin('4821')).toBeNull();
    expect(await withPin('4822')).toBe('incorrect_pin');
    expect(await withPin('4821')).toBeNull();
    for (const wrong of ['1111', '2222', '3333']) expect(await withPin(wrong)).toBe('incorrect_pin');
    expect(await withPin('4821')).toBe('pin_blocked');
    await setPin('555555');
    expect(await withPin('555555')).toBeNull();
    expect(await centsOf(sandbox, holder.wallet.address)).toBe(700n);
  });

  test('a payment is declined once the user is frozen, or the wallet is archived or changes its owner', async () => {
    const [frozen, archived, moved, deleted] = await Promise.all(
      [1, 2, 3, 4].map(() => cardHolder(sandbox, 1_000n)),
    );
    await configureUser(sandbox, frozen!.userId, { frozen: true });
    expect((await pay(frozen!.card.id, '1.00')).decline_reason).toBe('card_inactive');
    await configureUser(sandbox, frozen!.userId, { frozen: false });
    expect((await pay(frozen!.card.id, '1.00')).status).toBe('pending');

    await call(sandbox, 'archiveWallet', { path: { wallet_id: archived!.wallet.id } });
    expect((await pay(archived!.card.id, '1.00')).decline_reason).toBe('card_canceled');
    const { userId: nextOwner } = await newUser(sandbox);
    await call(
      sandbox,
      'updateWallet',
      { path: { wallet_id: moved!.wallet.id }, body: { owner: { user_id: nextOwner } } },
      { signWith: [moved!.key] },
    );
    expect((await pay(moved!.card.id, '1.00')).decline_reason).toBe('card_canceled');
    const replace = { path: { card_id: moved!.card.id }, body: { environment, replacement_reason: 'lost' } };
    expect(await refusal(sandbox, 'replaceCard', replace, moved!.as)).toMatchObject({ status: 404 });
    await call(sandbox, 'deleteUser', { path: { user_id: deleted!.userId } });
    expect((await pay(deleted!.card.id, '1.00')).decline_reason).toBe('card_canceled');
    const unverified = { user_id: frozen!.userId, environment, outcome: 'paused' };
    await control(sandbox, 'POST', 'verifications', unverified);
    expect((await pay(frozen!.card.id, '1.00')).decline_reason).toBe('customer_not_ready');
  });
});

describe('the token of a user who may no longer act', () => {
  type Change = 'createCard' | 'updateCard' | 'replaceCard' | 'createCardEphemeralKey';

  /** Everything that spends, or that shows a card's number. */
  async function refusals({ wallet, card, as }: Holder & { readonly card: { readonly id: string } }) {
    const path = { card_id: card.id };
    const changes: readonly (readonly [Change, object])[] = [
      ['createCard', cardFor(wallet)],
      ['updateCard', { path, body: { environment, status: 'active' } }],
      ['createCardEphemeralKey', { path, body: { environment, nonce: 'ephkn_5c2e8f7a1b9d4e60' } }],
      ['replaceCard', { path, body: { environment, replacement_reason: 'lost' } }],
    ];
    const answers = [];
    for (const [id, input] of changes) answers.push(await refusal(sandbox, id, input as never, as));
    return answers.map(({ status, body }) => [status, body.code]);
  }
  const unauthorized = Array.from({ length: 4 }, () => [401, 'missing_or_invalid_token']);

  test('the token of a user who may no longer act does not reactivate, replace, show or issue cards while the user is frozen', async () => {
    const holder = await cardHolder(sandbox, 1_000n);
    await configureUser(sandbox, holder.userId, { frozen: true });
    expect((await pay(holder.card.id, '1.00')).decline_reason).toBe('card_inactive');
    expect(await refusals(holder)).toEqual(unauthorized);
    expect((await pay(holder.card.id, '1.00')).decline_reason).toBe('card_inactive');
    const { body } = await call(sandbox, 'listCards', { query: { environment } }, holder.as);
    expect(body.data).toHaveLength(1);
    await configureUser(sandbox, holder.userId, { frozen: false });
    expect((await pay(holder.card.id, '1.00')).status).toBe('pending');
  });

  test('the token of a user who may no longer act does not do so for a device whose grant was revoked', async () => {
    const holder = await cardHolder(sandbox, 1_000n);
    const { body: asked } = await call(sandbox, 'authorizeOauthDevice', { body: {} });
    const { user_code, device_code } = asked;
    await control(sandbox, 'POST', `device_codes/${user_code}`, {
      action: 'approve',
      user_id: holder.userId,
    });
    const grant_type = 'urn:ietf:params:oauth:grant-type:device_code' as const;
    const { body } = await call(sandbox, 'exchangeOauthToken', { body: { grant_type, device_code } });
    const device = { ...holder, as: { headers: { authorization: `Bearer ${body.access_token}` } } };
    const { body: grants } = await call(sandbox, 'listOauthGrants', {}, holder.as);
    await call(sandbox, 'revokeOauthGrant', { path: { grant_id: grants.data[0]!.id } }, holder.as);
    expect(await refusals(device)).toEqual(unauthorized);
    expect((await call(sandbox, 'listCards', { query: { environment } }, device.as)).status).toBe(200);
    expect((await pay(holder.card.id, '1.00')).status).toBe('pending');
  });
});

test('a secret of a card is neither stored nor logged, nor in any response', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'cards-'));
  const said: string[] = [];
  const note = (...parts: readonly unknown[]): void => void said.push(JSON.stringify(parts));
  const log: Log = { debug: note, info: note, warn: note, error: note };
  const pin = '739104628517';
  try {
    const own = await startSandbox({ dataFolder: folder, log });
    const holder = await cardHolder(own, 1_000n);
    const path = { card_id: holder.card.id };
    const { body: config } = await call(own, 'getCardConfig', {
      path: { app_id: own.appId },
      query: { environment },
    });
    const encrypted_number = await encryptPin(config.data.publishable_key, pin);
    await call(own, 'updateCard', { path, body: { environment, pin: { encrypted_number } } }, holder.as);
    const nonce = 'nonce-of-a-page';
    const { body: made } = await call(
      own,
      'createCardEphemeralKey',
      { path, body: { environment, nonce } },
      holder.as,
    );
    const key = made.data.ephemeral_key_secret;
    const shown = await own.cards.reveal(environment, { key, nonce });
    expect(shown).toMatchObject({
      number: expect.stringMatching(new RegExp(`^4\\d{11}${holder.card.last4}$`)),
      cvc: expect.stringMatching(/^\d{3}$/),
    });
    expect(isLuhn(shown!.number)).toBe(true);
    expect(await own.cards.reveal(environment, { key, nonce: 'nonce-of-another' })).toBeUndefined();
    expect(await own.cards.reveal('production', { key, nonce })).toBeUndefined();
    expect(await own.cards.reveal(environment, { key: `${key}A`, nonce })).toBeUndefined();
    const paid = await control<{ status: string }>(own, 'POST', 'card_authorizations', {
      ...{ card_id: holder.card.id, amount: '1.00', reference: 'a', pin },
    });
    expect(paid.status).toBe('pending');
    own.clock.advance(15 * 60_000);
    expect(await own.cards.reveal(environment, { key, nonce })).toBeUndefined();
    await own.close();

    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) =>
      file.isFile(),
    );
    expect(files.length).toBeGreaterThan(2);
    const stored = files.map((file) => readFileSync(join(file.parentPath, file.name)).toString('latin1'));
    const everything = [...stored, ...said].join('\n');
    expect(everything).toContain(holder.card.id);
    for (const secret of [pin, shown!.number, key, encrypted_number])
      expect(everything).not.toContain(secret);
  } finally {
    await rm(folder, { recursive: true });
  }
});

/** ISO/IEC 7812-1, from the right: each second digit doubled. */
function isLuhn(number: string): boolean {
  let sum = 0;
  for (let index = 0; index < number.length; index += 1) {
    const digit = Number(number[number.length - 1 - index]);
    const value = index % 2 === 1 ? digit * 2 : digit;
    sum += value > 9 ? value - 9 : value;
  }
  return sum % 10 === 0;
}

test('an issuer that is down answers 503, and the app can try again', async () => {
  const holder = await newHolder(sandbox);
  await control(sandbox, 'PUT', 'providers/cards', { state: 'down' });
  const asked = { query: { environment } };
  expect(await refusal(sandbox, 'getCardCustomer', asked, holder.as)).toMatchObject({ status: 503 });
  await control(sandbox, 'PUT', 'providers/cards', { state: 'up' });
  expect((await call(sandbox, 'getCardCustomer', { query: { environment } }, holder.as)).status).toBe(200);
});

test('the configuration is that of the own app', async () => {
  const asked = { path: { app_id: 'cmanotherapp0000000000000' }, query: { environment } };
  expect(await refusal(sandbox, 'getCardConfig', asked)).toMatchObject({ status: 404 });
});

test('a statement lists what was posted in a month, and adds up', async () => {
  const holder = await cardHolder(sandbox, 100_000n);
  const { id } = holder.card;
  const statement = async (as: Holder['as'], period: string) => {
    const asked = { path: { card_id: id, period }, query: { environment } };
    return (await call(sandbox, 'getCardStatement', asked, as)).body;
  };
  const bought = await pay(id, '12.50', { merchant_name: 'Müller, "Söhne" & Co' });
  await settle(bought.id, 'capture', {});
  await settle(bought.id, 'refund', { amount: '2.50', reference: 'r' });
  const formula = await pay(id, '0.05', { merchant_name: '=HYPERLINK("https://evil.example")' });
  await settle(formula.id, 'capture', {});
  await pay(id, '7.00');
  const january = await statement(holder.as, '2026-01');
  expect(january.split('\r\n')).toEqual([
    'Date,Transaction,Merchant,Type,Amount,Currency',
    `2026-01-01,${bought.id},"Müller, ""Söhne"" & Co",purchase,12.50,usd`,
    expect.stringMatching(/^2026-01-01,[-0-9a-f]{36},"Müller, ""Söhne"" & Co",refund,-2\.50,usd$/),
    `2026-01-01,${formula.id},"'=HYPERLINK(""https://evil.example"")",purchase,0.05,usd`,
    '2026-01,,,total,10.05,usd',
    '',
  ]);
  sandbox.clock.set(Date.UTC(2026, 1, 3));
  const as = { headers: { authorization: `Bearer ${await tokenOf(sandbox, holder.userId)}` } };
  // Seven dollars were not captured in time, and went back.
  expect((await transactionsOf({ as }, id)).data[0]).toMatchObject({ status: 'expired', amount: 700 });
  expect(await centsOf(sandbox, holder.wallet.address)).toBe(100_000n - 1_005n);
  expect(await statement(as, '2026-01')).toBe(january);
  for (const period of ['2025-12', '2026-03']) {
    const asked = { path: { card_id: id, period }, query: { environment } };
    expect(await refusal(sandbox, 'getCardStatement', asked, as)).toMatchObject({ status: 404 });
  }
  const wrong = { path: { card_id: id, period: '2026-13' }, query: { environment } };
  expect((await refusal(sandbox, 'getCardStatement', wrong, as)).body.code).toBe('invalid_data');
});
