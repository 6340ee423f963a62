import { expect, test } from 'vitest';
import { aliceKey } from '../../mocks/authorization-keys.ts';
import { call, control, refusal } from '../support/call.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';

const bridge = { provider: 'bridge', environment: 'sandbox' } as const;
const address = { street_line_1: '10 Harbour Road', city: 'Berlin', country: 'DEU' };
const person = {
  ...{ first_name: 'Carol', last_name: 'Example', email: 'carol@acme.example', date_of_birth: '1981-09-30' },
  ...{ has_ownership: true, has_control: true, is_signer: true, residential_address: address },
  identifying_information: [{ type: 'passport', issuing_country: 'DEU', number: 'C01X00T47' }],
};
const data = {
  ...{ business_legal_name: 'Acme Europe GmbH', business_type: 'llc', registered_address: address },
  associated_persons: [person],
  documents: [{ purposes: ['business_formation'], file: 'JVBERi0xLjQKJeLjz9MKJSVFT0YK' }],
};

async function newOrganization(sandbox: TestSandbox) {
  const { body: quorum } = await call(sandbox, 'createKeyQuorum', {
    body: { public_keys: [aliceKey.publicKey] },
  });
  const { body } = await call(sandbox, 'createOrganization', {
    body: { display_name: 'Acme Europe', default_key_quorum_id: quorum.id },
  });
  return { organization_id: body.id };
}

async function changesOf(sandbox: TestSandbox) {
  const rows = await sandbox.database.orm.em
    .fork()
    .execute<{ payload: string }[]>(
      "select payload from outbox_events where type = 'organization.kyb.updated' order by sequence",
    );
  return rows.map(({ payload }) => JSON.parse(payload).changes.status);
}

async function pass(sandbox: TestSandbox, ms: number): Promise<void> {
  sandbox.clock.advance(ms);
  await sandbox.settle();
}

test('an organization is verified, then paused', async () => {
  await using sandbox = await startSandbox();
  const path = await newOrganization(sandbox);
  const body = { ...bridge, email: 'finance@acme.example' };
  const terms = await call(sandbox, 'initiateOrganizationKybTos', { path, body });
  const links = await call(sandbox, 'initiateOrganizationKybLinks', { path, body });
  expect(links.body).toMatchObject({ kyb: { status: 'not_started' }, tos: { link: terms.body.link } });
  const submission = { ...bridge, data, client_agreement_id: 'terms-1' };
  const submitted = await call(sandbox, 'submitOrganizationKyb', { path, body: submission });
  expect(submitted.body).toMatchObject({ status: 'under_review', kyb: { status: 'under_review' } });
  await pass(sandbox, 6000);
  await control(sandbox, 'POST', '/_sandbox/verifications', {
    ...path,
    environment: 'sandbox',
    outcome: 'paused',
  });
  const { body: list } = await call(sandbox, 'listOrganizationKyb', { path });
  expect(list.kyb_statuses).toMatchObject([
    { ...bridge, status: 'paused', capabilities: { payout_fiat: 'inactive' } },
  ]);
  expect(await changesOf(sandbox)).toEqual([
    ['not_started', 'under_review'],
    ['under_review', 'active'],
    ['active', 'paused'],
  ]);
});

test.each([
  [{ business_legal_name: undefined }, '/data/business_legal_name'],
  [{ associated_persons: [{ ...person, has_control: false }] }, '/data/associated_persons'],
  [
    { associated_persons: [person, { ...person, identifying_information: [] }] },
    '/data/associated_persons/1/identifying_information',
  ],
  [{ documents: [{ purposes: [], file: 'R0lGODlhAQABAAAAACw=' }] }, '/data/documents/0/file'],
  [
    { associated_persons: [{ ...person, place_of_birth: { country: 'ABC' } }] },
    '/data/associated_persons/0/place_of_birth/country',
  ],
])('a first submission with %o is refused', async (change, pointer) => {
  await using sandbox = await startSandbox();
  const path = await newOrganization(sandbox);
  const body = { ...bridge, data: JSON.parse(JSON.stringify({ ...data, ...change })) };
  const { body: refused } = await refusal(sandbox, 'submitOrganizationKyb', { path, body });
  expect(refused).toMatchObject({
    code: 'invalid_data',
    error: expect.stringMatching(new RegExp(`^${pointer}: `)),
  });
});

test('a tester verifies a user and an organization that were never submitted, and takes the provider away', async () => {
  await using sandbox = await startSandbox();
  const path = await newOrganization(sandbox);
  const { body: user } = await call(sandbox, 'createUser', {
    body: { linked_accounts: [{ type: 'custom_auth', custom_user_id: 'one' }] },
  });
  const approved = { environment: 'sandbox', outcome: 'approved' };
  const decided = await control(sandbox, 'POST', '/_sandbox/verifications', {
    user_id: user.id,
    ...approved,
  });
  expect(decided).toMatchObject({ status: 200, body: { entity_id: user.id, status: 'active' } });
  await control(sandbox, 'POST', '/_sandbox/verifications', { ...path, ...approved });
  const { body: list } = await call(sandbox, 'listOrganizationKyb', { path });
  expect(list.kyb_statuses).toMatchObject([{ status: 'active', tos: { status: 'approved' } }]);
  const neither = await control(sandbox, 'POST', '/_sandbox/verifications', approved);
  expect(neither).toMatchObject({ status: 400, body: { code: 'invalid_data' } });
  const unknown = await control(sandbox, 'POST', '/_sandbox/verifications', {
    user_id: 'unknown',
    ...approved,
  });
  expect(unknown.status).toBe(404);

  const down = await control(sandbox, 'PUT', '/_sandbox/providers/bridge', { state: 'down' });
  expect(down).toMatchObject({ status: 200, body: { state: 'down' } });
  const email = { ...bridge, email: 'finance@acme.example' };
  for (const operation of ['initiateOrganizationKybTos', 'initiateOrganizationKybLinks'] as const) {
    expect((await refusal(sandbox, operation, { path, body: email })).status).toBe(503);
  }
  await control(sandbox, 'PUT', '/_sandbox/providers/bridge', { state: 'up' });
  await call(sandbox, 'initiateOrganizationKybTos', { path, body: email });
});

test('a body of more than 16 MB is refused', async () => {
  await using sandbox = await startSandbox();
  const path = await newOrganization(sandbox);
  const documents = [{ purposes: ['business_formation'], file: `JVBERi0x${'A'.repeat(16_777_300)}` }];
  const body = { ...bridge, data: { ...data, documents } };
  expect(await refusal(sandbox, 'submitOrganizationKyb', { path, body })).toMatchObject({
    status: 413,
    body: { error: 'request body is larger than 16 MB' },
  });
});

test('unknown organizations are not found', async () => {
  await using sandbox = await startSandbox();
  const path = { organization_id: 'ulenemdi7lvm2se0y54hinn0' };
  const body = { ...bridge, email: 'finance@acme.example' };
  expect((await refusal(sandbox, 'listOrganizationKyb', { path })).status).toBe(404);
  expect((await refusal(sandbox, 'initiateOrganizationKybTos', { path, body })).status).toBe(404);
  expect((await refusal(sandbox, 'initiateOrganizationKybLinks', { path, body })).status).toBe(404);
  expect((await refusal(sandbox, 'submitOrganizationKyb', { path, body: { ...bridge, data } })).status).toBe(
    404,
  );
});
