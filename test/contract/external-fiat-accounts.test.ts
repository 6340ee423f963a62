import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ExternalFiatAccountEntity } from '../../src/domain/money/external-fiat-accounts/external-fiat-account.entity.ts';
import type {
  CreateExternalFiatAccountRequest,
  ExternalFiatAccount,
  ExternalFiatAccountResponse,
} from '../../src/generated/schemas.ts';
import { attempt, call, refusal } from '../support/call.ts';
import { verifiedOrganization, verifiedUser } from '../support/fiat/customers.ts';
import { asOtherApp } from '../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { documentedOperations, exampleBodies } from './every-operation/documented-operations.ts';

const query = { provider: 'bridge', environment: 'sandbox' } as const;

let sandbox: TestSandbox;
let user_id: string;
beforeAll(async () => {
  sandbox = await startSandbox();
});
beforeEach(async () => {
  await sandbox.reset();
  user_id = await verifiedUser(sandbox);
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const examples = exampleBodies(
  documentedOperations.find(({ operationId }) => operationId === 'createUserExternalFiatAccount')!,
) as CreateExternalFiatAccountRequest[];
const example = (type: string) => examples.find(({ account }) => account.type === type)!;

async function register(body: CreateExternalFiatAccountRequest): Promise<ExternalFiatAccount> {
  const answer = await call(sandbox, 'createUserExternalFiatAccount', { path: { user_id }, body });
  return answer.body.external_fiat_account;
}

test.each(examples.map((body) => [body.account.type, body] as const))(
  'an account of type %s is registered, and only its last four digits are shown',
  async (type, body) => {
    const account = await register(body);
    const { account_number: number } = body.account as { account_number?: string };
    expect(account).toEqual({
      id: expect.stringMatching(/^c[0-9a-z]{24}$/),
      provider: 'bridge',
      environment: 'sandbox',
      account_owner_name: 'Alice Example',
      account_type: type,
      ...(body.bank_name === undefined ? {} : { bank_name: body.bank_name }),
      currency: body.currency,
      ...(number === undefined ? {} : { last_4: number.slice(-4) }),
      created_at: expect.stringMatching(/Z$/),
      user_id,
    });
    const path = { user_id, account_id: account.id };
    const found = await call(sandbox, 'getUserExternalFiatAccount', { path });
    expect(found.body).toEqual({ external_fiat_account: account });
  },
);

test('the same account again is the one that is there; removed, it is registered again', async () => {
  const first = await register(example('iban'));
  const renamed = { ...example('iban'), account_owner_name: 'Alice B. Example' };
  expect(await register(renamed)).toEqual(first);
  sandbox.clock.advance(1000);
  const other = await register(example('us'));
  const list = () => call(sandbox, 'listUserExternalFiatAccounts', { path: { user_id }, query });
  expect((await list()).body).toEqual({ external_fiat_accounts: [other, first], next_cursor: null });
  const path = { user_id, account_id: first.id };
  expect((await call(sandbox, 'deleteUserExternalFiatAccount', { path })).body).toEqual({ success: true });
  expect((await list()).body.external_fiat_accounts).toEqual([other]);
  for (const operation of ['getUserExternalFiatAccount', 'deleteUserExternalFiatAccount'] as const) {
    expect(await refusal(sandbox, operation, { path })).toMatchObject({ status: 404 });
  }
  const again = await register(renamed);
  expect(again).toMatchObject({ account_owner_name: 'Alice B. Example', last_4: '3000' });
  expect(again.id).not.toBe(first.id);
});

test('an organization has accounts of its own', async () => {
  const organization_id = await verifiedOrganization(sandbox);
  const body = { ...example('iban'), account_owner_name: 'Acme Europe GmbH' };
  const created = await call(sandbox, 'createOrganizationExternalFiatAccount', {
    path: { organization_id },
    body,
  });
  const account = created.body.external_fiat_account;
  expect(account).toMatchObject({ organization_id, account_owner_name: 'Acme Europe GmbH', last_4: '3000' });
  expect(account).not.toHaveProperty('user_id');
  const path = { organization_id, account_id: account.id };
  const got = await call(sandbox, 'getOrganizationExternalFiatAccount', { path });
  expect(got.body).toEqual({ external_fiat_account: account });
  const listed = await call(sandbox, 'listOrganizationExternalFiatAccounts', {
    path: { organization_id },
    query,
  });
  expect(listed.body).toEqual({ external_fiat_accounts: [account], next_cursor: null });
  // Another owner's account is like an absent one.
  expect(
    await refusal(sandbox, 'getUserExternalFiatAccount', { path: { user_id, account_id: account.id } }),
  ).toMatchObject({ status: 404 });
  const removed = await call(sandbox, 'deleteOrganizationExternalFiatAccount', { path });
  expect(removed.body).toEqual({ success: true });
  for (const operation of [
    'getOrganizationExternalFiatAccount',
    'deleteOrganizationExternalFiatAccount',
  ] as const) {
    expect(await refusal(sandbox, operation, { path })).toMatchObject({ status: 404 });
  }
});

test.each(['user', 'organization'] as const)('a %s has at most 100 accounts', async (kind) => {
  const isUser = kind === 'user';
  const entityId = isUser ? user_id : await verifiedOrganization(sandbox);
  const add = isUser ? 'createUserExternalFiatAccount' : 'createOrganizationExternalFiatAccount';
  const path = isUser ? { user_id: entityId } : { organization_id: entityId };
  const created = (await attempt(sandbox, add, { path, body: example('iban') })).body;
  const { id } = (created as ExternalFiatAccountResponse).external_fiat_account;
  // Rows instead of 98 requests.
  const em = sandbox.database.orm.em.fork();
  const first = await em.findOneOrFail(ExternalFiatAccountEntity, { id });
  const copies = Array.from({ length: 98 }, (_, number) => ({
    ...{ ...first, id: `${id}-${number}`, providerAccountId: `copy-${number}` },
    fingerprint: `copy-${number}`,
  }));
  await em.insertMany(ExternalFiatAccountEntity, copies);
  expect(await attempt(sandbox, add, { path, body: example('us') })).toMatchObject({ status: 200 });
  expect(await refusal(sandbox, add, { path, body: example('gb') })).toMatchObject({
    status: 400,
    body: { code: 'invalid_request', error: 'expected at most 100 bank accounts; remove one first' },
  });
  // What is registered needs no room, and neither does another owner.
  expect(await attempt(sandbox, add, { path, body: example('iban') })).toMatchObject({
    body: { external_fiat_account: { id } },
  });
  const remove = isUser ? 'deleteUserExternalFiatAccount' : 'deleteOrganizationExternalFiatAccount';
  await attempt(sandbox, remove, { path: { ...path, account_id: id } });
  expect(await attempt(sandbox, add, { path, body: example('gb') })).toMatchObject({ status: 200 });
});

const spoilt: readonly (readonly [string, string, object])[] = [
  ['a routing number with a wrong check digit', '/account/routing_number', { routing_number: '021000022' }],
  ['an account number of three digits', '/account/account_number', { account_number: '123' }],
  ['an unknown kind of account', '/account/checking_or_savings', { checking_or_savings: 'gold' }],
  [
    'an IBAN with wrong check digits',
    '/account/account_number',
    { account_number: 'DE88370400440532013000' },
  ],
  ['an IBAN with blanks', '/account/account_number', { account_number: 'DE89 3704 0044 0532 0130 00' }],
  ['an IBAN of another country', '/account/country', { country: 'FRA' }],
  ['a country by two letters', '/account/country', { country: 'XXX' }],
  ['a BIC of seven characters', '/account/bic', { bic: 'COBADEF' }],
  ['a Pix key and a BR code', '/account', { br_code: '000201' }],
  ['an invalid Pix key', '/account/pix_key', { pix_key: 'alice' }],
  ['a CPF with wrong check digits', '/account/document_number', { document_number: '12345678900' }],
];
const typeOf = (what: string) =>
  /IBAN|BIC|country/.test(what) ? 'iban' : /Pix|CPF/.test(what) ? 'pix' : 'us';

test.each(spoilt)('%s is refused at %s', async (what, pointer, change) => {
  const body = example(typeOf(what));
  const number = (change as { account_number?: string }).account_number;
  const { status, body: refused } = await refusal(sandbox, 'createUserExternalFiatAccount', {
    path: { user_id },
    body: { ...body, account: { ...body.account, ...change } },
  });
  expect({ status, code: refused.code }).toEqual({ status: 400, code: 'invalid_data' });
  expect(refused.data?.issues).toEqual([
    { in: 'body', pointer, message: expect.not.stringContaining(number ?? 'no number') },
  ]);
});

test.each([
  ['us', 'eur'],
  ['iban', 'usd'],
  ['gb', 'eur'],
  ['pix', 'usd'],
  ['swift', 'xyz'],
])('an account of type %s in %s is refused', async (type, currency) => {
  const body = { ...example(type), currency };
  expect(await refusal(sandbox, 'createUserExternalFiatAccount', { path: { user_id }, body })).toMatchObject({
    status: 400,
    body: { code: 'invalid_data', error: expect.stringMatching(/^\/currency: /) },
  });
});

test('a US account without an address is refused', async () => {
  const { address: _address, ...body } = example('us');
  expect(await refusal(sandbox, 'createUserExternalFiatAccount', { path: { user_id }, body })).toMatchObject({
    status: 400,
    body: { code: 'invalid_data', error: expect.stringMatching(/^\/address: /) },
  });
});

test('only who is verified may register an account', async () => {
  const { body: created } = await call(sandbox, 'createUser', {
    body: { linked_accounts: [{ type: 'email', address: 'mallory@example.com' }] },
  });
  const { body: quorum } = await call(sandbox, 'createKeyQuorum', { body: { user_ids: [created.id] } });
  const { body: organization } = await call(sandbox, 'createOrganization', {
    body: { display_name: 'Mallory Ltd', default_key_quorum_id: quorum.id },
  });
  const unverified = { status: 400, body: { code: 'invalid_state' } };
  const body = example('iban');
  expect(
    await refusal(sandbox, 'createUserExternalFiatAccount', { path: { user_id: created.id }, body }),
  ).toMatchObject(unverified);
  expect(
    await refusal(sandbox, 'createOrganizationExternalFiatAccount', {
      path: { organization_id: organization.id },
      body,
    }),
  ).toMatchObject(unverified);
  // Verified in one environment is not verified in the other.
  expect(
    await refusal(sandbox, 'createUserExternalFiatAccount', {
      path: { user_id },
      body: { ...body, environment: 'production' },
    }),
  ).toMatchObject(unverified);
});

test('while the provider is down nothing is registered, and what is registered is shown', async () => {
  const known = await register(example('iban'));
  const organization_id = await verifiedOrganization(sandbox);
  sandbox.fiat.setUp(false);
  expect(
    await refusal(sandbox, 'createUserExternalFiatAccount', { path: { user_id }, body: example('us') }),
  ).toMatchObject({ status: 503 });
  expect(
    await refusal(sandbox, 'createOrganizationExternalFiatAccount', {
      path: { organization_id },
      body: example('us'),
    }),
  ).toMatchObject({ status: 503 });
  expect(await register(example('iban'))).toEqual(known);
  const listed = await call(sandbox, 'listUserExternalFiatAccounts', { path: { user_id }, query });
  expect(listed.body.external_fiat_accounts).toEqual([known]);
  const removed = await call(sandbox, 'deleteUserExternalFiatAccount', {
    path: { user_id, account_id: known.id },
  });
  expect(removed.body).toEqual({ success: true });
});

test('the accounts of a deleted user and of another app are unknown', async () => {
  const account = await register(example('iban'));
  const path = { user_id, account_id: account.id };
  const other = await asOtherApp(sandbox);
  for (const operation of ['getUserExternalFiatAccount', 'deleteUserExternalFiatAccount'] as const) {
    expect(await refusal(other, operation, { path })).toMatchObject({ status: 404 });
  }
  await call(sandbox, 'deleteUser', { path: { user_id } });
  expect(await refusal(sandbox, 'getUserExternalFiatAccount', { path })).toMatchObject({ status: 404 });
  expect(await refusal(sandbox, 'listUserExternalFiatAccounts', { path: { user_id }, query })).toMatchObject({
    status: 404,
  });
  expect(
    await refusal(sandbox, 'createUserExternalFiatAccount', { path: { user_id }, body: example('iban') }),
  ).toMatchObject({ status: 404 });
});
