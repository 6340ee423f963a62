import type { SqlEntityManager } from '@mikro-orm/sql';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  claimEndpoints,
  holdEndpoint,
  isAnyEndpointWaiting,
  LEASE_MS,
  markDue,
  releaseEndpoint,
} from '../../../src/domain/access/webhooks/fan-out-events.ts';
import { createWebhookEndpoint } from '../../../src/domain/access/webhooks/webhook-endpoint.ts';
import { resetDatabase } from '../../../src/storage/open-database.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../../support/databases.ts';
import { inTransaction, startMs } from '../contexts.ts';

describe.each(databaseKinds)('%s', (kind) => {
  let database: TestDatabase;
  let id: string;
  beforeAll(async () => {
    database = await openTestDatabase(kind);
  });
  afterAll(() => database.close());
  beforeEach(async () => {
    await resetDatabase(database);
    id = await inTransaction(database, async (context) => {
      const { endpoint } = await createWebhookEndpoint(context, { url: 'https://one.example/' });
      await markDue(context.em, [endpoint.id], startMs);
      return endpoint.id;
    });
  });

  const within = <T>(work: (em: SqlEntityManager) => Promise<T>): Promise<T> =>
    database.orm.em.fork().transactional((em) => work(em as SqlEntityManager));
  const claim = (owner: string, { afterMs = 0, known = [] as string[] } = {}) =>
    within((em) => claimEndpoints(em, { owner, nowMs: startMs + afterMs }, known, 10));
  const hold = (owner: string, afterMs = 0) =>
    within((em) => holdEndpoint(em, { owner, nowMs: startMs + afterMs }, id));

  test('an endpoint belongs to one process until its lease expires', async () => {
    expect(await claim('first')).toEqual([id]);
    expect(await claim('second', { afterMs: LEASE_MS - 1 })).toEqual([]);
    expect(await hold('second')).toBeUndefined();
    expect(await claim('second', { afterMs: LEASE_MS })).toEqual([id]);
    expect(await hold('first', LEASE_MS)).toBeUndefined();
  });

  test('renewing a claim extends the lease', async () => {
    await claim('first');
    expect(await hold('first', LEASE_MS - 1)).toMatchObject({ id });
    expect(await claim('second', { afterMs: 2 * LEASE_MS - 2 })).toEqual([]);
    expect(await claim('second', { afterMs: 2 * LEASE_MS - 1 })).toEqual([id]);
  });

  test('a restarted process of the same owner immediately reclaims the endpoints of the killed one', async () => {
    await claim('sandbox');
    expect(await claim('sandbox')).toEqual([id]);
    expect(await hold('sandbox')).toMatchObject({ id });
  });

  test('a process does not reclaim an endpoint that it serves, even after the lease expired', async () => {
    await claim('sandbox');
    expect(await claim('sandbox', { known: [id] })).toEqual([]);
    expect(await claim('sandbox', { known: [id], afterMs: LEASE_MS })).toEqual([]);
  });

  test('an endpoint counts as waiting for processes that could claim it', async () => {
    const isWaiting = (owner: string) =>
      within((em) => isAnyEndpointWaiting(em, { owner, nowMs: startMs }, []));
    expect(await isWaiting('first')).toBe(true);
    await claim('first');
    expect([await isWaiting('first'), await isWaiting('second')]).toEqual([true, false]);
  });

  test('only the owner of the lease can release it', async () => {
    const release = (owner: string) =>
      within((em) => releaseEndpoint(em, { owner, nowMs: startMs }, id, true));
    await claim('first');
    await release('second');
    expect(await hold('first')).toMatchObject({ id });
    await release('first');
    expect(await hold('first')).toBeUndefined();
  });

  test('at most the requested number is claimed, longest waiting first', async () => {
    await inTransaction(database, async (context) => {
      const { endpoint } = await createWebhookEndpoint(context, { url: 'https://two.example/' });
      await markDue(context.em, [endpoint.id], startMs - 1);
    });
    const few = await within((em) => claimEndpoints(em, { owner: 'first', nowMs: startMs }, [], 1));
    expect(few).toHaveLength(1);
    expect(few).not.toEqual([id]);
  });
});
