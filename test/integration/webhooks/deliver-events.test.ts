import type { SqlEntityManager } from '@mikro-orm/sql';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { adjustableClock } from '../../../src/adapters/runtime.ts';
import { LEASE_MS } from '../../../src/domain/access/webhooks/fan-out-events.ts';
import { replayWebhookDelivery } from '../../../src/domain/access/webhooks/webhook-deliveries.ts';
import {
  createWebhookEndpoint,
  deleteWebhookEndpoint,
  rotateWebhookSecret,
  updateWebhookEndpoint,
} from '../../../src/domain/access/webhooks/webhook-endpoint.ts';
import { recordEvent } from '../../../src/domain/base/events/events.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import { deliverEvents } from '../../../src/jobs/deliver-events.ts';
import { startJobs } from '../../../src/jobs/runner.ts';
import { sweepExpired } from '../../../src/jobs/sweep-expired.ts';
import type { KeyStore } from '../../../src/ports/key-store.ts';
import type { OperationContext, Services } from '../../../src/ports/operation-context.ts';
import type { WebhookOutcome, WebhookRequest } from '../../../src/ports/webhooks.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { resetDatabase } from '../../../src/storage/open-database.ts';
import { pauseRecording } from '../../ledger/record-answers.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../../support/databases.ts';
import { contextOf, inTransaction, services, startMs } from '../contexts.ts';

const dayMs = 24 * 3_600_000;

interface Sent {
  readonly by: string;
  readonly url: string;
  readonly id: string;
  readonly walletId: string;
  readonly number: number;
  readonly headers: WebhookRequest['headers'];
  readonly bodyText: string;
}

type Answer = (sent: Sent) => number | Promise<number>;

// These events are made up, so the ledger must not count them.
pauseRecording();

describe.each(databaseKinds)('%s', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(kind);
  });
  afterAll(() => database.close());
  const clock = adjustableClock({ startMs, frozen: true });
  beforeEach(async () => {
    await resetDatabase(database);
    clock.reset();
  });

  /** A process that delivers, with endpoints that answer as scripted. It is never woken and runs only on request. */
  function startProcess(owner: string, sent: Sent[], answer: Answer, others: Partial<Services> = {}) {
    const send = async ({ url, headers, bodyText }: WebhookRequest): Promise<WebhookOutcome> => {
      const { wallet_id, wallet_address } = JSON.parse(bodyText) as Record<string, string>;
      const event = {
        by: owner,
        url,
        id: headers['webhook-id']!,
        walletId: wallet_id!,
        number: Number(wallet_address),
        headers,
        bodyText,
      };
      sent.push(event);
      return { status: await answer(event), failure: undefined, durationMs: 0 };
    };
    const context = {
      services: { ...services, processId: owner, ...others, clock, webhooks: { ...services.webhooks, send } },
      inUnit: inUnitOf(unitsOf(database)),
    };
    return startJobs(
      [
        { ...deliverEvents({ ...context, writePayload: (payload) => payload }), everyMs: 3_600_000 },
        { ...sweepExpired(context), everyMs: 3_600_000 },
      ],
      services.log,
    );
  }

  const makeEndpoint = (url: string, appId = 'acme') =>
    inTransaction(database, (context) => createWebhookEndpoint(context, { url }), { appId });

  const record = (em: SqlEntityManager, walletId: string, number: number, appId = 'acme') =>
    recordEvent(contextOf(em, appId), {
      appId,
      type: 'wallet.restored',
      payload: {
        wallet_id: walletId,
        wallet_address: String(number),
        chain_type: 'ethereum',
      },
    });

  const recordAll = (events: readonly (readonly [walletId: string, number: number])[], appId = 'acme') =>
    inTransaction(database, async ({ em }) => {
      for (const [walletId, number] of events) await record(em, walletId, number, appId);
    });

  const deliveries = () =>
    database.orm.em
      .fork()
      .getKysely<Tables>()
      .selectFrom('webhook_deliveries')
      .selectAll()
      .orderBy('event_sequence')
      .execute();

  /** The numbers of a wallet's events in the order in which an endpoint received them. */
  const numbersOf = (sent: readonly Sent[], walletId: string, url = 'https://one.example/') =>
    sent.filter((event) => event.walletId === walletId && event.url === url).map(({ number }) => number);

  test('a slow endpoint does not delay others, nor a slow resource the others of its endpoint', async () => {
    await makeEndpoint('https://one.example/');
    await makeEndpoint('https://two.example/');
    await recordAll([
      ['slow', 1],
      ['slow', 2],
      ['quick', 1],
      ['quick', 2],
    ]);
    let release = (): void => undefined;
    const held = new Promise<number>((resolve) => {
      release = () => resolve(200);
    });
    const sent: Sent[] = [];
    let others = (): void => undefined;
    const othersAreThere = new Promise<void>((resolve) => {
      others = resolve;
    });
    const process = startProcess('a', sent, ({ url, walletId }) => {
      if (sent.length === 7) others();
      return url.includes('one') && walletId === 'slow' ? held : 200;
    });
    const settled = process.finish();
    await othersAreThere;
    expect(numbersOf(sent, 'slow', 'https://two.example/')).toEqual([1, 2]);
    expect(numbersOf(sent, 'quick', 'https://two.example/')).toEqual([1, 2]);
    expect(numbersOf(sent, 'quick')).toEqual([1, 2]);
    expect(numbersOf(sent, 'slow')).toEqual([1]);
    release();
    await settled;
    expect(numbersOf(sent, 'slow')).toEqual([1, 2]);
    await process.stop();
  });

  test('new events of a resource are sent after its pending retry, while other resources continue', async () => {
    await makeEndpoint('https://one.example/');
    const sent: Sent[] = [];
    let fails = true;
    const process = startProcess('a', sent, ({ walletId }) => (fails && walletId === 'w' ? 500 : 200));
    for (let number = 1; number <= 3; number += 1) {
      await recordAll([
        ['w', number],
        ['v', number],
      ]);
      await process.finish();
    }
    expect(numbersOf(sent, 'w')).toEqual([1]);
    expect(numbersOf(sent, 'v')).toEqual([1, 2, 3]);
    // Pending deliveries become due together with the one before them, so that they are not read earlier.
    const [first, ...behind] = (await deliveries()).filter(({ order_key }) => order_key === 'w');
    expect(behind.map((row) => row.next_attempt_at_ms)).toEqual(Array(2).fill(first!.next_attempt_at_ms));
    fails = false;
    clock.advance(6_000);
    await process.finish();
    expect(numbersOf(sent, 'w')).toEqual([1, 1, 2, 3]);
    expect((await deliveries()).map(({ status }) => status)).toEqual(Array(6).fill('delivered'));
    await process.stop();
  });

  test('an endpoint that recovers after a long time is not flooded', async () => {
    await makeEndpoint('https://one.example/');
    await recordAll(Array.from({ length: 450 }, (_, number) => [`w${number}`, 1] as const));
    let [underWay, most, mostWhileFailing] = [0, 0, 0];
    let isUp = false;
    const sent: Sent[] = [];
    const process = startProcess('a', sent, async () => {
      underWay += 1;
      if (isUp) most = Math.max(most, underWay);
      else if (sent.length > 16) mostWhileFailing = Math.max(mostWhileFailing, underWay);
      await new Promise((resolve) => setImmediate(resolve));
      underWay -= 1;
      return isUp ? 200 : 503;
    });
    await process.finish();
    expect(sent).toHaveLength(450);
    expect(mostWhileFailing).toBe(1);
    isUp = true;
    clock.advance(10_000);
    await process.finish();
    expect(sent).toHaveLength(900);
    expect(most).toBe(16);
    await process.stop();
  });

  test('a long queue of one resource is delivered in order, and so are the others', async () => {
    await makeEndpoint('https://one.example/');
    await recordAll(
      Array.from(
        { length: 700 },
        (_, number) => [number % 2 === 0 ? 'hot' : `w${number % 10}`, number] as const,
      ),
    );
    const sent: Sent[] = [];
    const process = startProcess('a', sent, () => 200);
    await process.finish();
    expect(sent).toHaveLength(700);
    for (const wallet of ['hot', 'w1', 'w3', 'w5', 'w7', 'w9']) {
      const numbers = numbersOf(sent, wallet);
      expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    }
    await process.stop();
  });

  test('when an outcome cannot be recorded, the event is sent again, never the next one before it', async () => {
    await makeEndpoint('https://one.example/');
    await recordAll([
      ['w', 1],
      ['w', 2],
    ]);
    const sent: Sent[] = [];
    const rename = (from: string, to: string) =>
      database.orm.em.fork().execute(`alter table webhook_deliveries rename column ${from} to ${to}`);
    const process = startProcess('a', sent, async () => {
      if (sent.length === 1) await rename('finished_at_ms', 'elsewhere');
      return 200;
    });
    await process.finish();
    await rename('elsewhere', 'finished_at_ms');
    expect(numbersOf(sent, 'w')).toEqual([1]);
    // It skips the endpoint for a while; otherwise it would send the same event in a loop.
    await process.finish();
    expect(numbersOf(sent, 'w')).toEqual([1]);
    // After its release, another process can claim it immediately.
    const other = startProcess('b', sent, () => 200);
    await other.finish();
    expect(numbersOf(sent, 'w')).toEqual([1, 1, 2]);
    expect((await deliveries()).map(({ status }) => status)).toEqual(['delivered', 'delivered']);
    await Promise.all([process.stop(), other.stop()]);
  });

  test('when the key store fails, the endpoint is released only after requests in progress have ended', async () => {
    const { endpoint } = await makeEndpoint('https://one.example/');
    await recordAll([['w', 1]]);
    const sent: Sent[] = [];
    const held = Promise.withResolvers<number>();
    const isUnderWay = Promise.withResolvers<void>();
    const hasFailed = Promise.withResolvers<void>();
    let isBroken = false;
    const keyStore: KeyStore = {
      ...services.keyStore,
      async open(...args) {
        if (!isBroken) return services.keyStore.open(...args);
        hasFailed.resolve();
        throw new Error('the key store is sealed');
      },
    };
    const answer = () => {
      isUnderWay.resolve();
      return held.promise;
    };
    const process = startProcess('a', sent, answer, { keyStore });
    const finished = process.finish();
    await isUnderWay.promise;
    isBroken = true;
    await inTransaction(database, (context) => rotateWebhookSecret(context, endpoint.id, {}));
    await recordAll([['v', 1]]);
    await process.settle();
    await hasFailed.promise;
    isBroken = false;
    await process.settle();
    held.resolve(200);
    await finished;
    const other = startProcess('b', sent, () => 200);
    await other.finish();
    expect(sent.map(({ by, walletId }) => `${by} ${walletId}`)).toEqual(['a w', 'b v']);
    await Promise.all([process.stop(), other.stop()]);
  });

  test('enabling an endpoint sends its pending deliveries after the commit', async () => {
    const { endpoint } = await makeEndpoint('https://one.example/');
    await recordAll([['w', 1]]);
    const sent: Sent[] = [];
    const process = startProcess('a', sent, () => 500);
    await process.finish();
    const set = (status: 'enabled' | 'disabled') =>
      inTransaction(database, async (context) => {
        await updateWebhookEndpoint(context, endpoint.id, { status });
        return context.notes.hasDeliveries;
      });
    await set('disabled');
    clock.advance(6_000);
    await process.finish();
    expect(sent).toHaveLength(1);
    expect(await set('enabled')).toBe(true);
    await process.finish();
    expect(sent).toHaveLength(2);
    expect(await set('enabled')).toBe(false);
    await process.stop();
  });

  describe('while more events are pending than are read at once', () => {
    const resources = Array.from({ length: 100 }, (_, index) => `w${index}`);
    const atOnce = 2;

    /** What is sent before an endpoint is changed, and after it. */
    async function sendAround(
      change: (context: OperationContext, id: string) => Promise<unknown>,
      meanwhile: () => Promise<unknown> = async () => undefined,
    ) {
      const { endpoint } = await makeEndpoint('https://one.example/');
      await recordAll(resources.flatMap((name) => [1, 2].map((number) => [name, number] as const)));
      const sent: Sent[] = [];
      const held = Promise.withResolvers<number>();
      const areUnderWay = Promise.withResolvers<void>();
      const process = startProcess('a', sent, () => {
        if (sent.length === atOnce) areUnderWay.resolve();
        return held.promise;
      });
      const finished = process.finish();
      await areUnderWay.promise;
      const isAnnounced = await inTransaction(database, async (context) => {
        await change(context, endpoint.id);
        return context.notes.hasDeliveries;
      });
      expect(isAnnounced).toBe(true);
      await meanwhile();
      await process.settle();
      held.resolve(200);
      await finished;
      await process.stop();
      return { before: sent.slice(0, atOnce), after: sent.slice(atOnce) };
    }

    test('a new URL receives them', async () => {
      const url = 'https://two.example/';
      const { before, after } = await sendAround((context, id) =>
        updateWebhookEndpoint(context, id, { url }),
      );
      expect(new Set(before.map((event) => event.url))).toEqual(new Set(['https://one.example/']));
      expect(after).toHaveLength(2 * resources.length - atOnce);
      expect(new Set(after.map((event) => event.url))).toEqual(new Set([url]));
    });

    test('a new URL receives them, also while events for other endpoints are recorded', async () => {
      const url = 'https://two.example/';
      const { after } = await sendAround(
        (context, id) => updateWebhookEndpoint(context, id, { url }),
        () => recordAll([['w', 1]], 'globex'),
      );
      expect(new Set(after.map((event) => event.url))).toEqual(new Set([url]));
    });

    test('a disabled endpoint receives none of them', async () => {
      const { after } = await sendAround((context, id) =>
        updateWebhookEndpoint(context, id, { status: 'disabled' }),
      );
      expect(after).toEqual([]);
      const pending = (await deliveries()).filter(({ status }) => status === 'pending');
      expect(pending).toHaveLength(2 * resources.length - atOnce);
    });

    test('a deleted endpoint receives none of them', async () => {
      const { after } = await sendAround(deleteWebhookEndpoint);
      expect(after).toEqual([]);
      expect(await deliveries()).toEqual([]);
    });

    test('a revoked secret signs none of them', async () => {
      let secret = '';
      const { before, after } = await sendAround(async (context, id) => {
        ({ secret } = await rotateWebhookSecret(context, id, { overlap_seconds: 0 }));
      });
      const verifier = new Webhook(secret);
      const isSignedAnew = ({ headers, bodyText }: Sent) => {
        const sentAt = new Date(Number(headers['webhook-timestamp']) * 1000);
        return headers['webhook-signature'] === verifier.sign(headers['webhook-id']!, sentAt, bodyText);
      };
      expect(before.map(isSignedAnew)).toEqual(before.map(() => false));
      expect(after.map(isSignedAnew)).toEqual(Array(2 * resources.length - atOnce).fill(true));
    });
  });

  test('unresponsive endpoints that use all places of a process do not block others', async () => {
    const count = 100;
    const apps = Array.from({ length: count }, (_, index) => `dead-${index}`);
    await inTransaction(database, async ({ em }) => {
      for (const app of apps) {
        await createWebhookEndpoint(contextOf(em, app), { url: `https://${app}.example/` });
        for (const walletId of ['first', 'second']) await record(em, walletId, 1, app);
      }
      // One request at a time is made to them.
      await em.getKysely<Tables>().updateTable('webhook_endpoints').set({ failing_since_ms: 0 }).execute();
    });
    await makeEndpoint('https://one.example/');
    const [first, second] = [Promise.withResolvers<number>(), Promise.withResolvers<number>()];
    const [areFull, areFullAgain] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const sent: Sent[] = [];
    const process = startProcess('a', sent, () => {
      if (sent.length === count) areFull.resolve();
      if (sent.length === 2 * count) areFullAgain.resolve();
      return (sent.length <= count ? first : second).promise;
    });
    await process.settle();
    await areFull.promise;
    await recordAll([['quick', 1]]);
    await process.settle();
    clock.advance(5_000);
    await process.settle();
    first.resolve(500);
    const finished = process.finish();
    await areFullAgain.promise;
    expect(numbersOf(sent, 'quick')).toEqual([1]);
    second.resolve(200);
    await finished;
    await process.stop();
  }, 120_000);

  test('a replay during the last attempt restarts the schedule, whatever the outcome of the attempt', async () => {
    const { endpoint } = await makeEndpoint('https://one.example/');
    await recordAll([['w', 1]]);
    const held = Promise.withResolvers<number>();
    const isUnderWay = Promise.withResolvers<void>();
    const sent: Sent[] = [];
    const process = startProcess('a', sent, () => {
      if (sent.length !== 2) return sent.length === 1 ? 500 : 200;
      isUnderWay.resolve();
      return held.promise;
    });
    await process.finish();
    await database.orm.em
      .fork()
      .getKysely<Tables>()
      .updateTable('webhook_deliveries')
      .set({ failures: 7 })
      .execute();
    clock.advance(60_000);
    const finished = process.finish();
    await isUnderWay.promise;
    const id = (await deliveries())[0]!.id;
    await inTransaction(database, (context) => replayWebhookDelivery(context, endpoint.id, id));
    held.resolve(500);
    await finished;
    expect(await deliveries()).toMatchObject([{ status: 'delivered', failures: 0, attempt_count: 3 }]);
    await process.stop();
  });

  test('stopping finishes requests in progress and starts no more', async () => {
    await makeEndpoint('https://one.example/');
    await recordAll([
      ['w', 1],
      ['w', 2],
      ['v', 1],
    ]);
    let release = (): void => undefined;
    const held = new Promise<number>((resolve) => {
      release = () => resolve(200);
    });
    const sent: Sent[] = [];
    let bothAreSent = (): void => undefined;
    const both = new Promise<void>((resolve) => {
      bothAreSent = resolve;
    });
    const process = startProcess('a', sent, () => {
      if (sent.length === 2) bothAreSent();
      return held;
    });
    const settled = process.finish();
    await both;
    const stopped = process.stop();
    release();
    await Promise.all([stopped, settled]);
    expect(sent.map(({ walletId, number }) => `${walletId}${number}`).sort()).toEqual(['v1', 'w1']);
    expect((await deliveries()).map(({ status }) => status)).toEqual(['delivered', 'pending', 'delivered']);

    // After its release, any process can claim it immediately.
    const next = startProcess('b', sent, () => 200);
    await next.finish();
    expect(sent).toHaveLength(3);
    expect(sent[2]).toMatchObject({ by: 'b', walletId: 'w', number: 2 });
    await next.stop();
  });

  test('after a month finished deliveries are deleted and pending ones kept', async () => {
    await makeEndpoint('https://one.example/');
    await makeEndpoint('https://two.example/');
    await recordAll([['w', 1]]);
    await recordAll([['v', 1]], 'globex');
    const process = startProcess('a', [], ({ url }) => (url.includes('one') ? 200 : 500));
    await process.finish();
    clock.advance(2 * dayMs);
    await process.finish();
    const rows = async () => ({
      deliveries: (await deliveries()).map(({ status }) => status).sort(),
      events: (await database.orm.em.fork().execute('select type from outbox_events')).length,
    });
    expect(await rows()).toEqual({ deliveries: ['delivered', 'pending'], events: 2 });
    // One by one on PostgreSQL only a week later, because most are dropped with their partition.
    clock.advance((kind === 'postgres' ? 35 : 28) * dayMs);
    await inTransaction(database, ({ em }) => em.execute("update webhook_endpoints set status = 'disabled'"));
    await process.finish();
    expect(await rows()).toEqual({ deliveries: ['pending'], events: 1 });
    await process.stop();
  });

  describe('processes that share a database', () => {
    // Two open transactions: SQLite has one at a time.
    test.runIf(kind === 'postgres')(
      'an event that is committed after a later one is still delivered',
      async () => {
        await makeEndpoint('https://one.example/');
        const sent: Sent[] = [];
        const process = startProcess('a', sent, () => 200);
        const slow = database.orm.em.fork();
        await slow.begin();
        await record(slow, 'w', 1);
        await recordAll([['v', 1]]);
        await process.finish();
        expect(sent.map(({ walletId }) => walletId)).toEqual(['v']);
        await slow.commit();
        await process.finish();
        expect(sent.map(({ walletId }) => walletId)).toEqual(['v', 'w']);
        expect((await deliveries()).map(({ event_sequence }) => event_sequence)).toEqual([1, 2]);
        await process.stop();
      },
    );

    test('two processes share the endpoints and send nothing twice', async () => {
      const urls = Array.from({ length: 6 }, (_, number) => `https://host-${number}.example/`);
      for (const url of urls) await makeEndpoint(url);
      const sent: Sent[] = [];
      const both = ['a', 'b'].map((owner) => startProcess(owner, sent, () => 200));
      for (let round = 0; round < 5; round += 1) {
        // Recorded while both are at work.
        const recording = Promise.all(
          [0, 1, 2, 3].map((wallet) =>
            recordAll(
              Array.from({ length: 10 }, (_, number) => [`w${wallet}`, round * 10 + number] as const),
            ),
          ),
        );
        await Promise.all([recording, ...both.map((process) => process.finish())]);
      }
      await Promise.all(both.map((process) => process.finish()));
      expect(sent).toHaveLength(5 * 4 * 10 * urls.length);
      expect(new Set(sent.map(({ url, id }) => `${url} ${id}`)).size).toBe(sent.length);
      for (const url of urls) {
        for (const wallet of ['w0', 'w1', 'w2', 'w3']) {
          expect(numbersOf(sent, wallet, url)).toEqual(Array.from({ length: 50 }, (_, number) => number));
        }
      }
      await Promise.all(both.map((process) => process.stop()));
    });

    test('while one process serves an endpoint, another one serves the others', async () => {
      await makeEndpoint('https://one.example/');
      await makeEndpoint('https://two.example/', 'umbrella');
      const sent: Sent[] = [];
      const held = Promise.withResolvers<number>();
      const isUnderWay = Promise.withResolvers<void>();
      const first = startProcess('a', sent, () => {
        isUnderWay.resolve();
        return held.promise;
      });
      const second = startProcess('b', sent, () => 200);
      await recordAll([['w', 1]]);
      const settled = first.finish();
      await isUnderWay.promise;
      await recordAll([['w', 2]]);
      await recordAll([['w', 1]], 'umbrella');
      await second.finish();
      const heard = () => sent.map(({ by, url, number }) => `${by} ${url} ${number}`);
      expect(heard()).toEqual(['a https://one.example/ 1', 'b https://two.example/ 1']);
      held.resolve(200);
      await settled;
      await first.finish();
      expect(heard().slice(2)).toEqual(['a https://one.example/ 2']);
      await Promise.all([first.stop(), second.stop()]);
    });

    test('the endpoints of a crashed process are claimed by another one after the lease', async () => {
      await makeEndpoint('https://one.example/');
      await recordAll([['w', 1]]);
      const sent: Sent[] = [];
      let isSent = (): void => undefined;
      const itIsSent = new Promise<void>((resolve) => {
        isSent = resolve;
      });
      // It does not learn the outcome of its request.
      const outcome = Promise.withResolvers<number>();
      const dead = startProcess('dead', sent, () => {
        isSent();
        return outcome.promise;
      });
      const ended = dead.finish();
      await itIsSent;
      const alive = startProcess('alive', sent, () => 200);
      clock.advance(LEASE_MS - 1);
      await alive.finish();
      expect(sent.map(({ by }) => by)).toEqual(['dead']);
      clock.advance(1);
      await alive.finish();
      expect(sent.map(({ by, number }) => [by, number])).toEqual([
        ['dead', 1],
        ['alive', 1],
      ]);
      outcome.resolve(500);
      await ended;
      await Promise.all([alive.stop(), dead.stop()]);
    });
  });
});
