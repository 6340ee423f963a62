import { expect, test } from 'vitest';
import { call, refusal } from '../../support/call.ts';
import { asOtherApp } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

async function makeUsers(sandbox: TestSandbox, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index += 1) {
    // Two of them in the same millisecond, the others apart.
    if (index !== 1) sandbox.clock.advance(1000);
    const { body } = await call(sandbox, 'createUser', {
      body: {
        linked_accounts: [
          { type: 'custom_auth', custom_user_id: `user-${index}` },
          { type: 'email', address: `user-${index}@example.com` },
        ],
      },
    });
    ids.push(body.id);
  }
  return ids;
}

test('pages go from the newest to the oldest, every user once', async () => {
  await using sandbox = await startSandbox({ seedData: false });
  const ids = await makeUsers(sandbox, 5);
  const seen: string[] = [];
  let cursor: string | null | undefined;
  do {
    const { body } = await call(sandbox, 'listUsers', { query: { limit: 2, ...(cursor ? { cursor } : {}) } });
    expect(body.data.length).toBeLessThanOrEqual(2);
    for (const user of body.data) expect(user.linked_accounts.length).toBe(2);
    seen.push(...body.data.map((user) => user.id));
    cursor = body.next_cursor;
    if (cursor !== null) expect(cursor).toBe(seen.at(-1));
  } while (cursor !== null);
  const [first, second, ...later] = ids as [string, string, ...string[]];
  expect(seen).toEqual([...later.reverse(), ...[first, second].sort().reverse()]);
  expect((await call(sandbox, 'listUsers', {})).body).toMatchObject({ next_cursor: null });
});

test('paging continues after the last user of a page was deleted', async () => {
  await using sandbox = await startSandbox({ seedData: false });
  const ids = await makeUsers(sandbox, 4);
  const first = await call(sandbox, 'listUsers', { query: { limit: 2 } });
  for (const user of first.body.data) await call(sandbox, 'deleteUser', { path: { user_id: user.id } });
  const rest = await call(sandbox, 'listUsers', { query: { cursor: first.body.next_cursor! } });
  expect(rest.body.data.map((user) => user.id).sort()).toEqual(ids.slice(0, 2).sort());
});

test('an app without users has an empty list, whatever users other apps have', async () => {
  await using sandbox = await startSandbox();
  const other = await asOtherApp(sandbox);
  expect((await call(other, 'listUsers', {})).body).toEqual({ data: [], next_cursor: null });
});

test('an unknown cursor, one of another app and a limit above 100 are refused', async () => {
  await using sandbox = await startSandbox({ seedData: false });
  const [id = ''] = await makeUsers(sandbox, 1);
  const other = await asOtherApp(sandbox);
  const invalid = {
    status: 400,
    body: {
      error: 'cursor: expected the `next_cursor` of a previous page',
      code: 'invalid_data',
      data: {
        issues: [
          { in: 'query', pointer: '/cursor', message: 'expected the `next_cursor` of a previous page' },
        ],
      },
    },
  };
  for (const cursor of [`did:service:c${'0'.repeat(24)}`, 'x']) {
    expect(await refusal(sandbox, 'listUsers', { query: { cursor } })).toEqual(invalid);
  }
  expect(await refusal(other, 'listUsers', { query: { cursor: id } })).toEqual(invalid);
  const { status, body } = await refusal(sandbox, 'listUsers', { query: { limit: 101 } });
  expect({ status, code: body.code, error: body.error }).toEqual({
    status: 400,
    code: 'invalid_data',
    error: 'limit: Query limit can be at maximum 100 records.',
  });
});
