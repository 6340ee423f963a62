import type { SqlEntityManager } from '@mikro-orm/sql';
import { describe, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../mocks/authorization-keys.ts';
import { WebhookSecretEntity } from '../../src/domain/access/webhooks/webhook.entity.ts';
import { rotateSigningKey } from '../../src/domain/wallets/tokens/access-tokens.ts';
import type { OperationId, Operations } from '../../src/generated/operations.ts';
import { createNotes } from '../../src/ports/operation-context.ts';
import { databaseKinds } from '../support/databases.ts';
import { openOperations, type RunInput, type TestOperations } from '../support/run-operations.ts';

// The life cycle of each resource on every database. Complete responses are tested in test/contract.

const HOUR_MS = 60 * 60 * 1000;

/** The response of an operation that must succeed. */
async function succeed<Id extends OperationId>(operations: TestOperations, id: Id, input: RunInput) {
  const answer = await operations.run(id, input);
  expect(answer).toMatchObject({ status: expect.toSatisfy((status) => status < 300) });
  return answer.body as Operations[Id]['response'];
}

describe.each(databaseKinds)('on %s', (kind) => {
  test('an organization and its secrets are created, changed, listed and deleted', async () => {
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

  test('a webhook endpoint and its secrets are created, changed, listed and deleted', async () => {
    await using operations = await openOperations(kind);
    const url = 'https://example.com/a';
    const { secret: first, ...made } = await succeed(operations, 'createWebhookEndpoint', {
      body: { url, event_types: ['wallet.archived', 'wallet.archived'] },
    });
    expect(made).toMatchObject({ event_types: ['wallet.archived'], status: 'enabled', description: null });
    const path = { endpoint_id: made.id };

    operations.clock.nowMs += HOUR_MS;
    const body = { description: "it's ours", status: 'disabled' as const };
    const disabled = await succeed(operations, 'updateWebhookEndpoint', { path, body });
    const changes = { ...body, disabled_reason: 'requested', updated_at: operations.clock.nowMs };
    expect(disabled).toEqual({ ...made, ...changes });
    expect(await succeed(operations, 'getWebhookEndpoint', { path })).toEqual(disabled);
    const enabled = await succeed(operations, 'updateWebhookEndpoint', { path, body: { status: 'enabled' } });
    expect(enabled).toMatchObject({ status: 'enabled', disabled_reason: null, description: "it's ours" });

    const secrets = new Set([first]);
    for (let time = 0; time < 4; time += 1) {
      secrets.add((await succeed(operations, 'rotateWebhookSecret', { path, body: {} })).secret);
    }
    expect(secrets.size).toBe(5);
    const sixth = await operations.run('rotateWebhookSecret', { path, body: {} });
    expect(sixth).toMatchObject({ status: 400, body: { code: 'invalid_state' } });
    await succeed(operations, 'rotateWebhookSecret', { path, body: { overlap_seconds: 0 } });
    const stored = await operations.database.orm.em.fork().find(WebhookSecretEntity, {});
    expect(stored.map(({ endpointId, expiresAtMs }) => ({ endpointId, expiresAtMs }))).toEqual([
      { endpointId: made.id, expiresAtMs: null },
    ]);

    await succeed(operations, 'deleteWebhookEndpoint', { path });
    expect(await succeed(operations, 'listWebhookEndpoints', {})).toEqual({ data: [], next_cursor: null });
    expect(await operations.database.orm.em.fork().count(WebhookSecretEntity)).toBe(0);
  });

  test('a condition set and its items are created, changed, listed and deleted', async () => {
    await using operations = await openOperations(kind);
    const owner_id = (
      await succeed(operations, 'createKeyQuorum', { body: { public_keys: [aliceKey.publicKey] } })
    ).id;
    const made = await succeed(operations, 'createConditionSet', { body: { name: 'known', owner_id } });
    const path = { condition_set_id: made.id };
    const signWith = [aliceKey.privateKey];
    const values = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, index) => ({ value: `Value 100% ${from + index}` }));
    const put = (id: 'addConditionSetItems' | 'replaceConditionSetItems', from: number, to: number) =>
      succeed(operations, id, { path, body: values(from, to), signWith });
    const valuesOf = (items: readonly { value: string }[]) => items.map(({ value }) => ({ value }));

    const first = await put('addConditionSetItems', 0, 100);
    operations.clock.nowMs += HOUR_MS;
    const second = await put('addConditionSetItems', 50, 150);
    expect(valuesOf(second)).toEqual(values(50, 150));
    expect(second.slice(0, 50)).toEqual(first.slice(50));
    const list = async (query: Record<string, unknown>) =>
      await succeed(operations, 'listConditionSetItems', { path, query });
    const page = await list({ query: 'VALUE 100% 14', limit: 6 });
    expect(new Set(page.items.map(({ value }) => value)).size).toBe(6);
    const next = await list({ query: 'value 100% 14', limit: 6, cursor: page.next_cursor });
    const found = [...page.items, ...next.items].map(({ value }) => value).sort();
    expect(found).toEqual(
      values(140, 150)
        .map(({ value }) => value)
        .concat('Value 100% 14')
        .sort(),
    );
    expect((await list({ query: '%%' })).items).toEqual([]);

    expect(valuesOf(await put('replaceConditionSetItems', 149, 151))).toEqual(values(149, 151));
    expect(valuesOf((await list({})).items).length).toBe(2);
    const [item] = (await list({})).items;
    const itemPath = { ...path, condition_set_item_id: item!.id };
    expect(await succeed(operations, 'getConditionSetItem', { path: itemPath })).toEqual(item);
    await succeed(operations, 'deleteConditionSetItem', { path: itemPath, signWith });
    expect(await operations.run('getConditionSetItem', { path: itemPath })).toMatchObject({ status: 404 });

    const change = { name: 'renamed', owner_id: null };
    const changed = await succeed(operations, 'updateConditionSet', { path, body: change, signWith });
    expect(changed).toEqual({ ...made, ...change });
    expect(await succeed(operations, 'getConditionSet', { path })).toEqual(changed);
    await succeed(operations, 'deleteConditionSet', { path });
    expect(await operations.run('getConditionSet', { path })).toMatchObject({ status: 404 });
  });

  test('an aggregation is created, read and deleted, and concurrent requests create at most ten', async () => {
    await using operations = await openOperations(kind);
    const make = () =>
      operations.run('createAggregation', {
        body: {
          name: 'daily',
          method: 'eth_signTransaction',
          metric: { field: 'value', field_source: 'ethereum_transaction', function: 'sum' },
          window: { type: 'rolling', seconds: 86_400 },
          conditions: [],
          group_by: [],
        },
      });
    const answers = await Promise.all(Array.from({ length: 14 }, make));
    expect(answers.filter(({ status }) => status === 200).length).toBe(10);
    const [made] = answers.flatMap((answer) => (answer.status === 200 ? [answer.body] : []));
    const path = { aggregation_id: made!.id };
    expect(await succeed(operations, 'getAggregation', { path })).toEqual(made);
    await succeed(operations, 'deleteAggregation', { path });
    expect(await operations.run('getAggregation', { path })).toMatchObject({ status: 404 });
    expect((await make()).status).toBe(200);
  });

  test('concurrent requests add an allowlist entry once', async () => {
    await using operations = await openOperations(kind);
    const path = { app_id: operations.app.id };
    const body = { type: 'email', value: "o'Neil@Example.com" };
    const put = () => succeed(operations, 'createAllowlistEntry', { path, body });
    const [entry, ...others] = await Promise.all([put(), put(), put()]);
    expect(entry).toMatchObject({ value: "o'neil@example.com", acceptedAt: null });
    expect(others).toEqual([entry, entry]);
    expect(await succeed(operations, 'listAllowlistEntries', { path })).toEqual([entry]);
    await succeed(operations, 'deleteAllowlistEntry', { path, body });
    expect(await operations.run('deleteAllowlistEntry', { path, body })).toMatchObject({ status: 404 });
  });

  test('concurrent first uses create one signing key', async () => {
    await using operations = await openOperations(kind);
    const path = { app_id: operations.app.id };
    const read = () => succeed(operations, 'getApp', { path });
    const [app, ...others] = await Promise.all([read(), read(), read(), read()]);
    for (const other of others) expect(other).toEqual(app);
    const { em } = operations.database.orm;
    const rotating = { ...operations.services, nowMs: operations.clock.nowMs + HOUR_MS };
    await em.fork().transactional(async (inner) => {
      await rotateSigningKey(
        { ...rotating, em: inner as SqlEntityManager, notes: createNotes() },
        operations.app.id,
      );
    });
    expect((await read()).verification_key).not.toBe(app!.verification_key);
    expect((await succeed(operations, 'getAppJwks', { path })).keys.length).toBe(2);
  });
});
