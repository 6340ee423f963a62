import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import { call, control } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

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
