import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { aliceKey } from '../../mocks/authorization-keys.ts';
import { noFiatProviders } from '../../src/adapters/outside-services.ts';
import type { Log } from '../../src/ports/runtime.ts';
import { call, control, refusal } from '../support/call.ts';
import { verifiedOrganization, verifiedUser, walletOf } from '../support/fiat/customers.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { documentedOperations, exampleBodies } from './every-operation/documented-operations.ts';

describe('verifyUser', () => {
  const png =
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const data = {
    first_name: 'Alma',
    last_name: 'Quisling',
    date_of_birth: '1987-02-28',
    residential_address: { street_line_1: '17 Zanzibar Row', city: 'Berlin', country: 'DEU' },
    identifying_information: [
      { type: 'passport', issuing_country: 'DEU', number: 'XQ71882043', image_front: png },
    ],
  };
  const bridge = { provider: 'bridge', environment: 'sandbox' } as const;

  async function newUser(sandbox: TestSandbox, accounts: { type: 'email'; address: string }[] = []) {
    const linked = [...accounts, { type: 'custom_auth' as const, custom_user_id: `user-${accounts.length}` }];
    return (await call(sandbox, 'createUser', { body: { linked_accounts: linked } })).body.id;
  }

  async function statusOf(sandbox: TestSandbox, userId: string) {
    const { body } = await call(sandbox, 'listUserKyc', { path: { user_id: userId } });
    return body.kyc_statuses;
  }

  async function eventsOf(sandbox: TestSandbox) {
    const rows = await sandbox.database.orm.em
      .fork()
      .execute<{ payload: string }[]>(
        "select payload from outbox_events where type = 'user.kyc.updated' order by sequence",
      );
    return rows.map(({ payload }) => JSON.parse(payload));
  }

  async function pass(sandbox: TestSandbox, ms: number): Promise<void> {
    sandbox.clock.advance(ms);
    await sandbox.settle();
  }

  test('a user accepts the terms, submits data and is verified, with one event for each change', async () => {
    await using sandbox = await startSandbox();
    const user_id = await newUser(sandbox);
    const path = { user_id };
    const body = { ...bridge, email: 'alma@example.com' };
    const terms = await call(sandbox, 'initiateUserKycTos', { path, body });
    expect(terms.body).toEqual({
      ...bridge,
      status: 'pending',
      link: expect.stringMatching(/^https:\/\/.*#terms$/),
    });
    const links = await call(sandbox, 'initiateUserKycLinks', { path, body });
    expect(links.body).toMatchObject({ status: 'not_started', tos: { link: terms.body.link } });
    expect(await eventsOf(sandbox)).toEqual([]);

    const submitted = await call(sandbox, 'submitUserKyc', {
      path,
      body: { ...bridge, data, client_agreement_id: 'terms-1' },
    });
    expect(submitted.body).toMatchObject({
      ...{ status: 'under_review', kyc: { status: 'under_review' }, tos: { status: 'approved' } },
      capabilities: { payout_fiat: 'pending' },
    });
    await pass(sandbox, 1999);
    expect((await statusOf(sandbox, user_id))[0]).toMatchObject({ status: 'under_review' });
    await pass(sandbox, 6000);
    expect(await statusOf(sandbox, user_id)).toMatchObject([
      {
        ...{ status: 'active', kyc: { status: 'approved' } },
        capabilities: { payin_fiat: 'active', payout_fiat: 'active' },
        endorsements: [{ name: 'base', status: 'approved', missing: null }],
      },
    ]);
    await pass(sandbox, 3_600_000);
    const events = await eventsOf(sandbox);
    expect(events.map(({ changes }) => changes)).toEqual([
      expect.objectContaining({
        status: ['not_started', 'under_review'],
        'tos.status': ['pending', 'approved'],
      }),
      expect.objectContaining({
        status: ['under_review', 'active'],
        'kyc.status': ['under_review', 'approved'],
      }),
    ]);
    expect(events[1]).toMatchObject({ user_id, ...bridge, data: { status: 'active' } });
    // The environments are apart, and production is meant when none is named.
    const other = await call(sandbox, 'initiateUserKycTos', {
      path,
      body: { provider: 'bridge', email: 'alma@example.com' },
    });
    expect(other.body).toMatchObject({ environment: 'production', status: 'pending' });
  });

  test('without the terms a verified user is not active, until they are accepted', async () => {
    await using sandbox = await startSandbox();
    const user_id = await newUser(sandbox);
    await call(sandbox, 'submitUserKyc', { path: { user_id }, body: { ...bridge, data } });
    await pass(sandbox, 6000);
    expect(await statusOf(sandbox, user_id)).toMatchObject([
      { status: 'incomplete', kyc: { status: 'approved' }, requirements_due: ['terms_of_service'] },
    ]);
  });

  test.each([
    [{ last_name: undefined }, '/data/last_name'],
    [{ identifying_information: [] }, '/data/identifying_information'],
    [{ residential_address: undefined }, '/data/residential_address'],
    [{ date_of_birth: '2987-02-28' }, '/data/date_of_birth'],
    [
      { residential_address: { street_line_1: 'x', city: 'x', country: 'XYZ' } },
      '/data/residential_address/country',
    ],
    [{ nationalities: ['DEU', 'de'] }, '/data/nationalities/1'],
    [
      { identifying_information: [{ type: 'ssn', issuing_country: 'USA', expiration: '2030-02-30' }] },
      '/data/identifying_information/0/expiration',
    ],
    [
      {
        identifying_information: [
          { type: 'ssn', issuing_country: 'USA', image_front: 'R0lGODlhAQABAAAAACw=' },
        ],
      },
      '/data/identifying_information/0/image_front',
    ],
    [
      { identifying_information: [{ type: 'ssn', issuing_country: 'USA', number: 'REFUSED' }] },
      '/data/identifying_information/0/number',
    ],
  ])('a first submission with %o is refused', async (change, pointer) => {
    await using sandbox = await startSandbox();
    const user_id = await newUser(sandbox);
    const body = { ...bridge, data: JSON.parse(JSON.stringify({ ...data, ...change })) };
    const { status, body: refused } = await refusal(sandbox, 'submitUserKyc', { path: { user_id }, body });
    expect([status, refused.code]).toEqual([400, 'invalid_data']);
    expect(refused.error).toMatch(new RegExp(`^${pointer}: `));
    expect(await statusOf(sandbox, user_id)).toEqual([]);
  });

  test('what the provider refuses has its reason in `cause`', async () => {
    await using sandbox = await startSandbox();
    const user_id = await newUser(sandbox);
    const document = { type: 'passport', issuing_country: 'DEU', number: 'REFUSED' };
    const { body } = await refusal(sandbox, 'submitUserKyc', {
      path: { user_id },
      body: { ...bridge, data: { ...data, identifying_information: [document] } },
    });
    expect(body).toMatchObject({ cause: 'the document number is not valid' });
  });

  test('links need an email address, and a redirect that only a browser follows safely', async () => {
    await using sandbox = await startSandbox();
    const user_id = await newUser(sandbox);
    const path = { user_id };
    const without = await refusal(sandbox, 'initiateUserKycLinks', { path, body: bridge });
    expect(without.body.error).toMatch(/^\/email: /);
    const linked = await newUser(sandbox, [{ type: 'email', address: 'alma@example.com' }]);
    await call(sandbox, 'initiateUserKycLinks', { path: { user_id: linked }, body: bridge });
    const body = { ...bridge, email: 'alma@example.com' };
    for (const redirect_uri of ['http://app.example/', 'javascript:alert(1)', 'app']) {
      const refused = await refusal(sandbox, 'initiateUserKycLinks', {
        path,
        body: { ...body, redirect_uri },
      });
      expect(refused.body.error).toMatch(/^\/redirect_uri: /);
    }
    const local = { ...body, redirect_uri: 'http://localhost:3000/done' };
    await call(sandbox, 'initiateUserKycLinks', { path, body: local });
  });

  test('a body of 16 MiB is accepted, a larger one is not, and other operations keep their limit', async () => {
    await using sandbox = await startSandbox();
    const user_id = await newUser(sandbox);
    const image = (bytes: number): string => png.slice(0, 12) + 'A'.repeat(Math.floor((bytes - 12) / 4) * 4);
    const bodyOf = (bytes: number) => ({
      ...bridge,
      data: {
        ...data,
        identifying_information: [{ type: 'passport', issuing_country: 'DEU', image_front: image(bytes) }],
      },
    });
    const path = { user_id };
    const large = await call(sandbox, 'submitUserKyc', { path, body: bodyOf(16_776_000) });
    expect(large.body.status).toBe('under_review');
    const tooLarge = await refusal(sandbox, 'submitUserKyc', { path, body: bodyOf(16_777_300) });
    expect(tooLarge).toMatchObject({ status: 413, body: { error: 'request body is larger than 16 MB' } });
    const other = await refusal(sandbox, 'initiateUserKycTos', { path, body: bodyOf(1_100_000) });
    expect(other.status).toBe(413);
  });

  test('personal data is in no file and in no log', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'custos-kyc-'));
    const lines: string[] = [];
    const note = (...args: unknown[]): void => void lines.push(JSON.stringify(args));
    const log: Log = { debug: note, info: note, warn: note, error: note };
    {
      await using sandbox = await startSandbox({ dataFolder: folder, log });
      const user_id = await newUser(sandbox);
      const path = { user_id };
      const secret = { ...data, email: 'zebulon@example.com', phone: '+4930998877665' };
      await call(sandbox, 'submitUserKyc', { path, body: { ...bridge, data: secret } });
      // The fingerprint of a request under an idempotency key would be stored.
      const repeatable = { path, body: { ...bridge, data: secret } };
      await refusal(sandbox, 'submitUserKyc', repeatable, { idempotencyKey: 'k' });
      const document = { ...data.identifying_information[0], number: 'REFUSED' };
      const refused = { ...data, identifying_information: [document] };
      await refusal(sandbox, 'submitUserKyc', { path, body: { ...bridge, data: refused } });
      const wrong = { ...data, date_of_birth: '1987-02-30' };
      await refusal(sandbox, 'submitUserKyc', { path, body: { ...bridge, data: wrong } });
      await pass(sandbox, 6000);
      expect(await statusOf(sandbox, user_id)).toMatchObject([{ kyc: { status: 'approved' } }]);
    }
    const files = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'latin1'));
    expect(files.length).toBeGreaterThan(1);
    // The search finds what is there.
    expect(files.some((text) => text.includes('under_review') || text.includes('approved'))).toBe(true);
    const personal = [
      'Quisling',
      'Alma',
      'Zanzibar',
      'XQ71882043',
      '1987-02-2',
      'zebulon',
      '998877665',
      png.slice(40, 80),
    ];
    for (const word of personal) {
      expect(
        [...files, ...lines].filter((text) => text.includes(word)),
        word,
      ).toEqual([]);
    }
    await rm(folder, { recursive: true });
  });

  test('a provider that is down answers 503, and what is stored stays readable', async () => {
    await using sandbox = await startSandbox();
    const user_id = await newUser(sandbox);
    const path = { user_id };
    await call(sandbox, 'submitUserKyc', { path, body: { ...bridge, data } });
    sandbox.fiat.setUp(false);
    const down = await refusal(sandbox, 'submitUserKyc', { path, body: { ...bridge, data } });
    expect(down).toMatchObject({ status: 503, body: { error: expect.stringContaining('`bridge`') } });
    await pass(sandbox, 600_000);
    expect(await statusOf(sandbox, user_id)).toMatchObject([{ status: 'under_review' }]);
    sandbox.fiat.setUp(true);
    await pass(sandbox, 600_000);
    expect(await statusOf(sandbox, user_id)).toMatchObject([{ kyc: { status: 'approved' } }]);
  });

  test('unknown users, and a deleted user, are not found', async () => {
    await using sandbox = await startSandbox();
    const user_id = await newUser(sandbox);
    await call(sandbox, 'submitUserKyc', { path: { user_id }, body: { ...bridge, data } });
    await call(sandbox, 'deleteUser', { path: { user_id } });
    for (const id of [user_id, 'did:service:cmh2k4x0p00001qx9h3v7t5zz']) {
      const path = { user_id: id };
      const body = { ...bridge, email: 'alma@example.com' };
      expect((await refusal(sandbox, 'listUserKyc', { path })).status).toBe(404);
      expect((await refusal(sandbox, 'initiateUserKycTos', { path, body })).status).toBe(404);
      expect((await refusal(sandbox, 'initiateUserKycLinks', { path, body })).status).toBe(404);
      expect((await refusal(sandbox, 'submitUserKyc', { path, body: { ...bridge, data } })).status).toBe(404);
    }
    await pass(sandbox, 600_000);
    expect(await eventsOf(sandbox)).toEqual([]);
  });
});

describe('the verification page', () => {
  // The page that the links of a verification lead to, and what it does for the customer.
  const bridge = { provider: 'bridge', environment: 'sandbox' } as const;

  let sandbox: TestSandbox;
  beforeAll(async () => {
    sandbox = await startSandbox();
  });
  beforeEach(() => sandbox.reset());
  afterAll(() => sandbox[Symbol.asyncDispose]());

  interface Opened {
    readonly path: { user_id: string };
    readonly links: { readonly terms: URL; readonly verification: URL };
    /** Where the page reads and changes its state. */
    readonly state: string;
  }

  async function openLinks(more: { redirect_uri?: string } = {}): Promise<Opened> {
    const { body: user } = await call(sandbox, 'createUser', {
      body: { linked_accounts: [{ type: 'email', address: 'alma@example.com' }] },
    });
    const path = { user_id: user.id };
    const { body } = await call(sandbox, 'initiateUserKycLinks', { path, body: { ...bridge, ...more } });
    const links = { terms: new URL(body.tos.link!), verification: new URL(body.kyc.link!) };
    return { path, links, state: stateOf(links.verification) };
  }

  const stateOf = ({ pathname }: URL) => `/_sandbox/verification_pages/${pathname.split('/').pop()}`;
  const act = (state: string, action: string) => control(sandbox, 'POST', state, { action });

  async function pass(ms: number): Promise<void> {
    sandbox.clock.advance(ms);
    await sandbox.settle();
  }

  async function changesOf(type: string) {
    const rows = await sandbox.database.orm.em
      .fork()
      .execute<{ payload: string }[]>('select payload from outbox_events where type = ? order by sequence', [
        type,
      ]);
    return rows.map(({ payload }) => JSON.parse(payload).changes);
  }

  async function visit(path: string, method: 'GET' | 'POST' = 'GET') {
    const answer = await sandbox.dispatcher.request({ origin: sandbox.baseUrl, path, method });
    return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
  }

  test('the links of a verification lead to a page that runs its own script only and cannot be framed', async () => {
    const { links } = await openLinks();
    expect(links.terms.pathname).toBe(links.verification.pathname);
    expect([links.terms.hash, links.verification.hash]).toEqual(['#terms', '#verification']);
    const { status, headers, text } = await visit(links.verification.pathname);
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    const policy = String(headers['content-security-policy']);
    expect(policy).toMatch(/^default-src 'none'; .*frame-ancestors 'none'$/);
    expect(policy).not.toContain('unsafe');
    for (const tag of ['script', 'style']) {
      const inline = new RegExp(`<${tag}>([^]*?)</${tag}>`).exec(text)?.[1] ?? '';
      expect(inline).not.toBe('');
      expect(policy).toContain(`'sha256-${createHash('sha256').update(inline).digest('base64')}'`);
    }
    // Nothing from elsewhere, no handlers that the policy would block, and the token is not in the page.
    expect(text).not.toMatch(/\ssrc=|\son[a-z]+=|https?:/);
    expect(text).not.toContain(links.verification.pathname.split('/').pop());
    for (const part of ['<html lang="en">', 'name="viewport"']) expect(text).toContain(part);
    expect((await visit(links.verification.pathname, 'POST')).status).toBe(405);
    for (const other of ['/_sandbox/verify/', '/_sandbox/verify/x', `${links.verification.pathname}0`]) {
      expect((await visit(other)).status, other).toBe(404);
    }
  });

  test('a user accepts the terms and completes the verification, with one event for each change', async () => {
    const { path, state } = await openLinks({ redirect_uri: 'https://app.example/done?a=1&b="x"' });
    const first = await control(sandbox, 'GET', state);
    expect(first).toEqual({
      status: 200,
      body: {
        ...{ kind: 'person', environment: 'sandbox', status: 'not_started' },
        ...{ terms: 'pending', verification: 'not_started', requirements_due: [], rejection_reasons: [] },
        actions: ['accept_terms', 'complete', 'decline'],
        redirect_uri: 'https://app.example/done?a=1&b="x"',
      },
    });
    // Long after the links were made, when the server seldom asks about the user.
    await pass(86_400_000);
    const accepted = await act(state, 'accept_terms');
    expect(accepted.body).toMatchObject({ terms: 'approved', actions: ['complete', 'decline'] });
    expect(await changesOf('user.kyc.updated')).toEqual([{ 'tos.status': ['pending', 'approved'] }]);
    const completed = await act(state, 'complete');
    expect(completed.body).toMatchObject({ verification: 'under_review', actions: [] });
    await pass(6000);
    const { body } = await call(sandbox, 'listUserKyc', { path });
    expect(body.kyc_statuses).toMatchObject([
      { status: 'active', tos: { status: 'approved' }, kyc: { status: 'approved' } },
    ]);
    expect((await changesOf('user.kyc.updated')).map(({ status }) => status)).toEqual([
      undefined,
      ['not_started', 'under_review'],
      ['under_review', 'active'],
    ]);
    expect((await control(sandbox, 'GET', state)).body).toMatchObject({ status: 'active', actions: [] });
  });

  test('who declines is rejected', async () => {
    const { path, state } = await openLinks();
    await act(state, 'decline');
    await pass(6000);
    const { body } = await call(sandbox, 'listUserKyc', { path });
    expect(body.kyc_statuses).toMatchObject([
      { status: 'rejected', kyc: { status: 'rejected', rejection_reasons: [expect.any(String)] } },
    ]);
    expect((await control(sandbox, 'GET', state)).body).toMatchObject({
      verification: 'rejected',
      actions: ['accept_terms'],
      rejection_reasons: [expect.any(String)],
    });
  });

  test('an incomplete verification is completed on the page', async () => {
    const { path, state } = await openLinks();
    const incomplete = { ...path, environment: 'sandbox', outcome: 'incomplete' };
    await control(sandbox, 'POST', '/_sandbox/verifications', incomplete);
    expect((await control(sandbox, 'GET', state)).body).toMatchObject({
      verification: 'incomplete',
      requirements_due: ['proof_of_address'],
    });
    await act(state, 'accept_terms');
    await act(state, 'complete');
    await pass(6000);
    const { body } = await call(sandbox, 'listUserKyc', { path });
    expect(body.kyc_statuses).toMatchObject([{ status: 'active', requirements_due: [] }]);
  });

  test('what was done already is not done again', async () => {
    const { path, state } = await openLinks();
    await act(state, 'accept_terms');
    await act(state, 'complete');
    const refused = { status: 400, body: { code: 'invalid_state' } };
    // A second tab, before and after the decision: an approved user does not go back into review.
    for (const action of ['accept_terms', 'complete', 'decline']) {
      expect(await act(state, action)).toMatchObject(refused);
    }
    await pass(6000);
    for (const action of ['accept_terms', 'complete', 'decline']) {
      expect(await act(state, action)).toMatchObject(refused);
    }
    const { body } = await call(sandbox, 'listUserKyc', { path });
    expect(body.kyc_statuses).toMatchObject([{ status: 'active' }]);
    expect(await act(state, 'approve')).toMatchObject({ status: 400, body: { code: 'invalid_data' } });
  });

  test('an organization is verified on the page', async () => {
    const { body: quorum } = await call(sandbox, 'createKeyQuorum', {
      body: { public_keys: [aliceKey.publicKey] },
    });
    const { body: organization } = await call(sandbox, 'createOrganization', {
      body: { display_name: 'Acme Europe', default_key_quorum_id: quorum.id },
    });
    const path = { organization_id: organization.id };
    const body = { ...bridge, email: 'finance@acme.example' };
    const { body: terms } = await call(sandbox, 'initiateOrganizationKybTos', { path, body });
    const state = stateOf(new URL(terms.link));
    expect((await control(sandbox, 'GET', state)).body).toMatchObject({ kind: 'business' });
    await act(state, 'accept_terms');
    await act(state, 'complete');
    await pass(6000);
    expect((await changesOf('organization.kyb.updated')).at(-1)).toMatchObject({
      status: ['under_review', 'active'],
      'kyb.status': ['under_review', 'approved'],
    });
  });

  test('an unknown link, a page of another site and a deleted user change nothing', async () => {
    const { path, state } = await openLinks();
    const unknown = `/_sandbox/verification_pages/${'0'.repeat(32)}`;
    expect((await control(sandbox, 'GET', unknown)).status).toBe(404);
    expect((await act(unknown, 'complete')).status).toBe(404);
    const from = async (headers: Record<string, string>) => {
      const { hostname, port } = new URL(sandbox.baseUrl);
      const sent = request({
        ...{ host: hostname, port, path: state, method: 'POST', ca: sandbox.caPem, servername: 'localhost' },
        headers: { 'content-type': 'application/json', ...headers },
      }).end(JSON.stringify({ action: 'complete' }));
      const [answer] = (await once(sent, 'response')) as [IncomingMessage];
      answer.resume();
      return answer.statusCode;
    };
    expect(await from({ origin: 'https://evil.example' })).toBe(404);
    expect(await from({ host: 'rebound.example' })).toBe(404);
    expect((await control(sandbox, 'GET', state)).body).toMatchObject({ verification: 'not_started' });
    await call(sandbox, 'deleteUser', { path });
    expect((await act(state, 'complete')).status).toBe(200);
    await pass(6000);
    expect(await changesOf('user.kyc.updated')).toEqual([]);
  });
});

describe('a provider that is not configured', () => {
  test('without the provider, what needs it is not supported, and what is stored is still read', async () => {
    await using sandbox = await startSandbox();
    const user_id = await verifiedUser(sandbox);
    const organization_id = await verifiedOrganization(sandbox);
    const wallet = await walletOf(sandbox, user_id);
    Object.assign(sandbox.services, { fiatProviders: noFiatProviders });
    const path = { user_id, organization_id, wallet_id: wallet.id };
    const operations = [
      ...(['initiateUserKycTos', 'initiateUserKycLinks', 'submitUserKyc'] as const),
      ...(['initiateOrganizationKybTos', 'initiateOrganizationKybLinks', 'submitOrganizationKyb'] as const),
      ...(['createUserExternalFiatAccount', 'createOrganizationExternalFiatAccount'] as const),
      'createFiatDepositAccount' as const,
    ];
    for (const id of operations) {
      const documented = documentedOperations.find(({ operationId }) => operationId === id)!;
      const [example] = exampleBodies(documented) as object[];
      const body = { ...example, provider: 'bridge', environment: 'sandbox' };
      expect(await refusal(sandbox, id, { path, body }), id).toMatchObject({
        status: 400,
        body: {
          code: 'not_supported',
          error: '/provider: the provider `bridge` is not configured here for `sandbox`',
        },
      });
    }
    const { body: user } = await call(sandbox, 'listUserKyc', { path: { user_id } });
    expect(user.kyc_statuses).toMatchObject([{ status: 'active' }]);
    const { body: organization } = await call(sandbox, 'listOrganizationKyb', { path: { organization_id } });
    expect(organization.kyb_statuses).toMatchObject([{ status: 'active' }]);
  });
});
