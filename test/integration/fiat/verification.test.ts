import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ProviderUnavailableError } from '../../../src/adapters/outside-services.ts';
import type { KYBStatusResponse, KYCStatusResponse } from '../../../src/generated/schemas.ts';
import type { FiatProvider, Submission } from '../../../src/ports/fiat.ts';
import { databaseKinds } from '../../support/databases.ts';
import { at, type FiatWorld, openFiatWorld } from './fiat-world.ts';

const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const address = { street_line_1: '17 Zanzibar Row', city: 'Berlin', country: 'DEU' };
const data = {
  first_name: 'Alma',
  last_name: 'Quisling',
  date_of_birth: '1987-02-28',
  residential_address: address,
  identifying_information: [
    { type: 'passport', issuing_country: 'DEU', number: 'XQ71882043', image_front: png },
  ],
};
const business = {
  ...{ business_legal_name: 'Acme Europe GmbH', business_type: 'llc', registered_address: address },
  associated_persons: [
    {
      ...{ first_name: 'Alma', last_name: 'Quisling', email: 'alma@acme.example', has_ownership: true },
      ...{ date_of_birth: '1987-02-28', has_control: true, is_signer: true, residential_address: address },
      identifying_information: data.identifying_information,
    },
  ],
};

/** The same JSON value, written in another order. */
const reversed = <T extends object>(value: T): T => Object.fromEntries(Object.entries(value).reverse()) as T;

describe.each(databaseKinds)('verification on %s', (kind) => {
  let world: FiatWorld;
  let provider: FiatProvider;
  let userId: string;
  /** What the provider was given. */
  let submitted: Submission[];
  beforeAll(async () => {
    world = await openFiatWorld(kind);
    provider = world.operations.services.fiatProviders.find(at.provider, at.environment)!;
  });
  beforeEach(async () => {
    submitted = [];
    world.override({
      submit(submission) {
        submitted.push(submission);
        return provider.submit(submission);
      },
    });
    const account = { type: 'email', address: `alma-${randomUUID()}@example.com` };
    const created = await world.operations.run('createUser', { body: { linked_accounts: [account] } });
    userId = (created.body as { id: string }).id;
  });
  afterEach(() => world.override({}));
  afterAll(() => world[Symbol.asyncDispose]());

  const submit = (change: object = {}, more: object = {}) =>
    world.operations.run('submitUserKyc', {
      path: { user_id: userId },
      body: { ...at, data: { ...data, ...change }, ...more },
    });
  const statuses = async () => {
    const { body } = await world.operations.run('listUserKyc', { path: { user_id: userId } });
    return (body as { kyc_statuses: KYCStatusResponse[] }).kyc_statuses;
  };
  const execute = (sql: string, values: unknown[] = []) =>
    world.operations.database.orm.em.fork().execute<Record<string, unknown>[]>(sql, values);
  const rowOf = async (id = userId) =>
    (await execute('select * from fiat_customers where entity_id = ?', [id]))[0];
  const changesOf = async (type: string, id: string) => {
    const rows = await execute('select payload from outbox_events where type = ? order by sequence', [type]);
    return rows
      .map(({ payload }) => JSON.parse(String(payload)))
      .filter((event) => event.user_id === id || event.organization_id === id)
      .map(({ changes }) => changes.status);
  };

  test('a user is verified, with one event for each change', async () => {
    const path = { user_id: userId };
    const links = await world.operations.run('initiateUserKycLinks', { path, body: at });
    expect(links).toMatchObject({ status: 200, body: { status: 'not_started' } });
    expect(await submit({}, { client_agreement_id: 'terms-1' })).toMatchObject({
      status: 200,
      body: { status: 'under_review', tos: { status: 'approved' } },
    });
    await world.wait(60);
    expect(await statuses()).toMatchObject([
      { ...at, status: 'active', kyc: { status: 'approved' }, capabilities: { payout_fiat: 'active' } },
    ]);
    expect(await changesOf('user.kyc.updated', userId)).toEqual([
      ['not_started', 'under_review'],
      ['under_review', 'active'],
    ]);
  });

  test('an organization is verified, then paused', async () => {
    const quorum = await world.operations.run('createKeyQuorum', { body: { user_ids: [userId] } });
    const created = await world.operations.run('createOrganization', {
      body: { display_name: 'Acme Europe', default_key_quorum_id: (quorum.body as { id: string }).id },
    });
    const { id } = created.body as { id: string };
    const path = { organization_id: id };
    const body = { ...at, data: business, client_agreement_id: 'terms-1' };
    const answer = await world.operations.run('submitOrganizationKyb', { path, body });
    expect(answer).toMatchObject({ status: 200, body: { status: 'under_review' } });
    await world.wait(60);
    const { customer_id: customerId } = (await rowOf(id)) as { customer_id: string };
    await world.fiat.decide(at.environment, customerId, { outcome: 'paused' });
    await world.wait(60);
    const listed = await world.operations.run('listOrganizationKyb', { path });
    expect((listed.body as { kyb_statuses: KYBStatusResponse[] }).kyb_statuses).toMatchObject([
      { status: 'paused', kyb: { status: 'approved' }, capabilities: { payout_fiat: 'inactive' } },
    ]);
    expect(await changesOf('organization.kyb.updated', id)).toEqual([
      ['under_review', 'active'],
      ['active', 'paused'],
    ]);
    expect(await world.operations.run('submitOrganizationKyb', { path, body })).toMatchObject({
      status: 200,
      body: { status: 'paused' },
    });
  });

  test('of two submissions at once one customer comes', async () => {
    const answers = await Promise.all([submit(), submit({ phone: '+4930998877665' })]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    expect(await execute('select id from fiat_customers where entity_id = ?', [userId])).toHaveLength(1);
    // Whichever was stored second, the next submission needs no minimum.
    const later = await world.operations.run('submitUserKyc', {
      path: { user_id: userId },
      body: { ...at, data: { phone: '+4930998877666' } },
    });
    expect(later.status).toBe(200);
  });

  test('the same submission again goes to the provider once, while that reviews it or has approved it', async () => {
    await submit();
    const { submission_fingerprint: first } = (await rowOf())!;
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    expect(
      await world.operations.run('submitUserKyc', {
        path: { user_id: userId },
        body: reversed({ ...at, data: reversed(data) }),
      }),
    ).toMatchObject({ status: 200, body: { status: 'under_review' } });
    await world.wait(60);
    await world.fiat.decide(at.environment, String((await rowOf())!.customer_id), { outcome: 'approved' });
    expect(await submit()).toMatchObject({ status: 200, body: { status: 'active' } });
    expect(submitted).toHaveLength(1);
    // Other data, then the first again, are not the last submission.
    await submit({ phone: '+4930998877665' });
    expect((await rowOf())!.submission_fingerprint).not.toBe(first);
    await submit();
    expect((await rowOf())!.submission_fingerprint).toBe(first);
    expect(submitted).toHaveLength(3);
    await submit({}, { client_agreement_id: 'terms-2' });
    expect(submitted).toHaveLength(4);
  });

  test('the same submission again is reviewed again when the provider asked for more', async () => {
    await submit({ last_name: 'Incomplete' });
    await world.wait(60);
    expect(await statuses()).toMatchObject([{ status: 'incomplete' }]);
    expect(await submit({ last_name: 'Incomplete' })).toMatchObject({ body: { status: 'under_review' } });
    expect(submitted).toHaveLength(2);
  });

  test('a submission whose answer was lost is sent again, for the same customer', async () => {
    world.override({
      async submit(submission) {
        await provider.submit(submission);
        throw new ProviderUnavailableError('the answer was lost');
      },
    });
    expect((await submit()).status).toBe(503);
    expect(await rowOf()).toBeUndefined();
    world.override({});
    expect(await submit()).toMatchObject({ status: 200, body: { status: 'under_review' } });
    const { id: current } = (await provider.customer(String((await rowOf())!.customer_id)))!;
    expect(current).toBe((await rowOf())!.customer_id);
  });

  test('equal data of two users has different fingerprints, and nothing submitted is stored', async () => {
    await submit({ email: 'zebulon@example.com', phone: '+4930998877665' });
    const { submission_fingerprint: first } = (await rowOf())!;
    const created = await world.operations.run('createUser', {
      body: { linked_accounts: [{ type: 'custom_auth', custom_user_id: randomUUID() }] },
    });
    userId = (created.body as { id: string }).id;
    await submit({ email: 'zebulon@example.com', phone: '+4930998877665' });
    expect((await rowOf())!.submission_fingerprint).not.toBe(first);
    await world.wait(60);
    const tables = await execute(
      kind === 'postgres'
        ? "select table_name as name from information_schema.tables where table_schema = 'public'"
        : "select name from sqlite_master where type = 'table'",
    );
    expect(tables.length).toBeGreaterThan(30);
    const stored = await Promise.all(tables.map(({ name }) => execute(`select * from "${String(name)}"`)));
    const text = JSON.stringify(stored);
    expect(text).toContain('under_review');
    for (const word of [
      'Quisling',
      'Zanzibar',
      'XQ71882043',
      '1987-02-2',
      'zebulon',
      '998877665',
      png.slice(40, 80),
    ]) {
      expect(text.includes(word), word).toBe(false);
    }
  });
});
