import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { adjustableClock } from '../../../src/adapters/runtime.ts';
import { ATTEMPT_TIMEOUT_MS } from '../../../src/domain/access/webhooks/due-deliveries.ts';
import { claimEndpoints, LEASE_MS } from '../../../src/domain/access/webhooks/fan-out-events.ts';
import {
  createWebhookEndpoint,
  deleteWebhookEndpoint,
  rotateWebhookSecret,
  updateWebhookEndpoint,
} from '../../../src/domain/access/webhooks/webhook-endpoint.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import { claimedEndpoint } from '../../../src/jobs/claimed-endpoint.ts';
import type { KeyStore } from '../../../src/ports/key-store.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { resetDatabase } from '../../../src/storage/open-database.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../../support/databases.ts';
import { inTransaction, services, startMs } from '../contexts.ts';

const [one, two] = ['https://one.example/', 'https://two.example/'];

describe.each(databaseKinds)('%s', (kind) => {
  let database: TestDatabase;
  let id: string;
  const clock = adjustableClock({ startMs, frozen: true });
  beforeAll(async () => {
    database = await openTestDatabase(kind);
  });
  afterAll(() => database.close());
  beforeEach(async () => {
    await resetDatabase(database);
    clock.reset();
    ({
      endpoint: { id },
    } = await inTransaction(database, (context) => createWebhookEndpoint(context, { url: one })));
    await inTransaction(database, ({ em }) =>
      em.getKysely<Tables>().updateTable('webhook_endpoints').set({ next_due_at_ms: 0 }).execute(),
    );
    expect(await claim('a')).toEqual([id]);
  });

  const claim = (owner: string) =>
    inTransaction(database, ({ em }) => claimEndpoints(em, { owner, nowMs: clock.now() }, [], 1));

  /** The endpoint as used by process `a`; `counts` contains the numbers of database reads. */
  function use(keyStore: KeyStore = services.keyStore) {
    const counts = { reads: 0 };
    const endpoint = claimedEndpoint(id, {
      services: { ...services, processId: 'a', clock, keyStore },
      inUnit: (work) => {
        counts.reads += 1;
        return inUnitOf(unitsOf(database))(work);
      },
    });
    return { endpoint, counts };
  }

  const setUrl = (url: string) =>
    inTransaction(database, (context) => updateWebhookEndpoint(context, id, { url }));
  const urlOf = async (target: Promise<{ url: string } | undefined>) => (await target)?.url;

  test('is read once for concurrent callers, and again when it is invalidated', async () => {
    const { endpoint, counts } = use();
    const targets = Array.from({ length: 16 }, () => endpoint.target());
    expect(await Promise.all(targets.map(urlOf))).toEqual(Array(16).fill(one));
    expect(counts.reads).toBe(1);
    await setUrl(two);
    expect(await urlOf(endpoint.target())).toBe(one);
    endpoint.invalidate();
    expect(await urlOf(endpoint.target())).toBe(two);
    expect(counts.reads).toBe(2);
  });

  test('a change during a read is seen by those who wait for that read', async () => {
    let readsOfKeyStore = 0;
    const { endpoint } = use({
      ...services.keyStore,
      async open(...args) {
        readsOfKeyStore += 1;
        if (readsOfKeyStore === 1) {
          await setUrl(two);
          endpoint.invalidate();
        }
        return services.keyStore.open(...args);
      },
    });
    expect(await urlOf(endpoint.target())).toBe(two);
  });

  test('continuous invalidations do not block callers', async () => {
    const { endpoint } = use({
      ...services.keyStore,
      async open(...args) {
        endpoint.invalidate();
        return services.keyStore.open(...args);
      },
    });
    for (let rotation = 0; rotation < 3; rotation += 1) {
      await inTransaction(database, (context) => rotateWebhookSecret(context, id, { overlap_seconds: 0 }));
      expect(await urlOf(endpoint.target())).toBe(one);
    }
  });

  test('a failed read is repeated by the next caller', async () => {
    let isBroken = true;
    const { endpoint } = use({
      ...services.keyStore,
      async open(...args) {
        if (isBroken) throw new Error('the key store is sealed');
        return services.keyStore.open(...args);
      },
    });
    const [first, second] = [endpoint.target(), endpoint.target()];
    await expect(first).rejects.toThrow('the key store is sealed');
    await expect(second).rejects.toThrow('the key store is sealed');
    isBroken = false;
    expect(await urlOf(endpoint.target())).toBe(one);
  });

  test('stays claimed for longer than an attempt takes while it is in use', async () => {
    const { endpoint } = use();
    expect(await urlOf(endpoint.target())).toBe(one);
    for (let step = 0; step < 4; step += 1) {
      clock.advance(LEASE_MS - ATTEMPT_TIMEOUT_MS);
      expect(await urlOf(endpoint.target())).toBe(one);
      clock.advance(ATTEMPT_TIMEOUT_MS);
      expect(await claim('b')).toEqual([]);
    }
  });

  test('can no longer be used after it is disabled, deleted or claimed by another process', async () => {
    const ends: ((id: string) => Promise<unknown>)[] = [
      () => inTransaction(database, (context) => updateWebhookEndpoint(context, id, { status: 'disabled' })),
      async () => {
        await inTransaction(database, (context) => updateWebhookEndpoint(context, id, { status: 'enabled' }));
        clock.advance(LEASE_MS);
        expect(await claim('b')).toEqual([id]);
      },
      () => inTransaction(database, (context) => deleteWebhookEndpoint(context, id)),
    ];
    for (const end of ends) {
      const { endpoint } = use();
      await end(id);
      expect(await endpoint.target()).toBeUndefined();
      endpoint.invalidate();
      expect(await endpoint.target()).toBeUndefined();
      expect(await endpoint.read(async () => 'more')).toBeUndefined();
    }
  });
});
