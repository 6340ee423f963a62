import { afterAll, beforeAll, expect, test } from 'vitest';
import { operations } from '../../../src/generated/operations.ts';
import { operations as controlOperations } from '../../../src/sandbox/generated/operations.ts';
import { attempt, call, control } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

let sandbox: TestSandbox;
let userId: string;

beforeAll(async () => {
  sandbox = await startSandbox({ prefix: 'acme' });
  const linked_accounts = [{ type: 'email' as const, address: 'dora@example.com' }];
  userId = (await call(sandbox, 'createUser', { body: { linked_accounts } })).body.id;
});
afterAll(() => sandbox[Symbol.asyncDispose]());

test('the control plane takes the ids of users as the API gives them out, and gives them out the same', async () => {
  expect(userId).toMatch(/^did:acme:/);
  const verified = await control(sandbox, 'POST', '/_sandbox/verifications', {
    user_id: userId,
    outcome: 'approved',
  });
  expect(verified).toMatchObject({ status: 200, body: { entity_id: userId } });
  const frozen = await control(sandbox, 'PUT', `/_sandbox/apps/${sandbox.appId}/users/${userId}`, {
    frozen: true,
  });
  expect(frozen).toMatchObject({ status: 200, body: { id: userId } });
  const { body: upcoming } = await control(sandbox, 'GET', '/_sandbox/clock/upcoming');
  expect(upcoming.data).toContainEqual(
    expect.objectContaining({ kind: 'customer_check', resource_id: userId }),
  );
});

test('a request that the control plane sends has the ids of the API', async () => {
  const sent = await control(sandbox, 'POST', '/_sandbox/requests', {
    operation: 'getUser',
    path: { user_id: userId },
  });
  expect(sent.body).toMatchObject({ status: 200, body: { id: userId } });
});

test('users are found by their ids, and the pages of their list continue from one', async () => {
  const found = await call(sandbox, 'searchUsers', { body: { searchTerm: userId } });
  expect(found.body.id).toBe(userId);
  const { body: page } = await call(sandbox, 'listUsers', { query: { limit: 1 } });
  expect(page).toMatchObject({ data: [{ id: userId }], next_cursor: userId });
  const next = await call(sandbox, 'listUsers', { query: { limit: 1, cursor: page.next_cursor! } });
  expect(next.body.data).toHaveLength(1);
});

const reads = (all: typeof operations | typeof controlOperations) =>
  Object.values(all).filter(({ method, path }) => method === 'GET' && !path.includes('{'));

test('no answer of the control plane shows the neutral word in an id or a header', async () => {
  for (const { id, path } of reads(controlOperations)) {
    const { body } = await sandbox.dispatcher.request({ origin: sandbox.baseUrl, path, method: 'GET' });
    expect(await body.text(), id).not.toMatch(/did:service:|\bservice-(app-id|authorization-signature)/);
  }
});

test('no answer of the API shows the neutral word in an id', async () => {
  for (const { id } of reads(operations)) {
    const { body } = await attempt(sandbox, id as keyof typeof operations, {});
    expect(JSON.stringify(body) ?? '', id).not.toContain('did:service:');
  }
});
