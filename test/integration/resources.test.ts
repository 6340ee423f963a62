import { describe, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../mocks/authorization-keys.ts';
import type { OperationId, Operations } from '../../src/generated/operations.ts';
import { databaseKinds } from '../support/databases.ts';
import { openOperations, type RunInput, type TestOperations } from '../support/run-operations.ts';

// The life of each resource, the same on every database. What the operations answer in full stands in test/contract.

const HOUR_MS = 60 * 60 * 1000;

/** The answer of an operation that must succeed. */
async function succeed<Id extends OperationId>(operations: TestOperations, id: Id, input: RunInput) {
  const answer = await operations.run(id, input);
  expect(answer).toMatchObject({ status: expect.toSatisfy((status) => status < 300) });
  return answer.body as Operations[Id]['response'];
}

describe.each(databaseKinds)('on %s', (kind) => {
  test('an organization and its secrets are made, changed, listed and deleted', async () => {
    await using operations = await openOperations(kind);
    const makeQuorum = async (publicKey: string) =>
      (await succeed(operations, 'createKeyQuorum', { body: { public_keys: [publicKey] } })).id;
    const [first, second] = [await makeQuorum(aliceKey.publicKey), await makeQuorum(bobKey.publicKey)];
    const made = await succeed(operations, 'createOrganization', {
      body: { display_name: "Acme's", default_key_quorum_id: first },
    });
    const path = { organization_id: made.id };

    operations.clock.nowMs += HOUR_MS;
    const body = { display_name: 'Acme EMEA', default_key_quorum_id: second };
    const changed = await succeed(operations, 'updateOrganization', { path, body });
    expect(changed).toEqual({ ...made, ...body, updated_at: operations.clock.nowMs });
    const newer = await succeed(operations, 'createOrganization', {
      body: { display_name: 'Newer', default_key_quorum_id: first },
    });
    expect(await succeed(operations, 'listOrganizations', { query: { limit: 1 } })).toEqual({
      data: [newer],
      next_cursor: newer.id,
    });
    const rest = await succeed(operations, 'listOrganizations', { query: { cursor: newer.id } });
    expect(rest).toEqual({ data: [changed], next_cursor: null });

    const { organization_secret: text, ...secret } = await succeed(operations, 'createOrganizationSecret', {
      path,
    });
    expect(text.slice(-4)).toBe(secret.last_four);
    const signing = { secret_id: secret.id, signing_public_key: aliceKey.publicKey };
    await succeed(operations, 'updateOrganizationSecretSigningKey', { path, body: signing });
    operations.clock.nowMs += HOUR_MS;
    for (let time = 0; time < 2; time += 1) {
      await succeed(operations, 'revokeOrganizationSecret', { path, body: { secret_id: secret.id } });
    }
    expect(await succeed(operations, 'listOrganizationSecrets', { path })).toEqual({
      data: [
        {
          ...secret,
          signing_public_key: aliceKey.publicKey,
          revoked_at: new Date(operations.clock.nowMs).toISOString(),
        },
      ],
    });
    expect(await operations.run('updateOrganizationSecretSigningKey', { path, body: signing })).toMatchObject(
      {
        status: 404,
      },
    );

    await succeed(operations, 'deleteOrganization', { path });
    expect(await operations.run('getOrganization', { path })).toMatchObject({ status: 404 });
    expect((await succeed(operations, 'listOrganizations', {})).data).toEqual([newer]);
  });
});
