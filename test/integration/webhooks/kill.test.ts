import { hash } from 'node:crypto';
import { expect, test } from 'vitest';
import { figureSize, isLong, noteFigure } from '../../figures/figure.ts';
import { databaseKinds } from '../../support/databases.ts';
import {
  type Received,
  type Reply,
  startWebhookReceiver,
  verifyWebhook,
} from '../../support/webhook-receiver.ts';
import { type EventProcess, processesOn } from './processes.ts';

// The process is killed during its work, repeatedly, on the same database, while its endpoint fails three times in
// ten. `TEST_LONG=1` is 100,000 events and 50 kills.
const kills = isLong ? 50 : 2;
const eventCount = figureSize({ short: 150, long: 100_000 });
const clients = 4;
/** Requests to one endpoint whose outcome is not committed, which are repeated after a kill. */
const underWay = 64;
/** Large enough that no event is given up. */
const mostFailures = 5;

/** What a receiver noted of one request. */
interface Note extends Received {
  readonly isAccepted: boolean;
  readonly userId: string;
}

/** Fails three requests in ten, in different ways, depending on the id and the attempt, so every run is the same. */
function flakyReply(notes: Note[], secret: () => string): Reply {
  const tries = new Map<string, number>();
  return (received, response) => {
    // On arrival, because verifiers check the age of a request.
    verifyWebhook(received, secret());
    const count = (tries.get(received.id) ?? 0) + 1;
    tries.set(received.id, count);
    const digest = Buffer.from(hash('sha256', `${received.id}.${count}`), 'hex');
    const isAccepted = count > mostFailures || digest[0]! >= 77;
    const { user } = received.body as unknown as { user: { id: string } };
    notes.push({ ...received, isAccepted, userId: user.id });
    if (isAccepted) response.writeHead(200).end('ok');
    else if (digest[1]! < 100) response.writeHead(503).end();
    else if (digest[1]! < 180) response.writeHead(302, { location: '/elsewhere' }).end();
    else response.destroy();
  };
}

/** Types of acknowledged events by user, in the order of the changes. */
type Acknowledged = Map<string, string[]>;

/** Creates users and changes one in twenty of them four times, in sequence, until the process is killed. */
async function makeEvents(
  served: EventProcess,
  acknowledged: Acknowledged,
  note: () => void,
  name: string,
): Promise<void> {
  for (let number = 0; ; number += 1) {
    const handle = `${name}-${number}`;
    const emails = Array.from({ length: 20 }, (_, index) => `${handle}-${index}@example.com`);
    try {
      const ids = await served.createUsers(emails);
      for (const id of ids) {
        acknowledged.set(id, ['user.created']);
        note();
      }
      const [id] = ids as [string];
      const done = (type: string): void => {
        acknowledged.get(id)!.push(type);
        note();
      };
      await served.linkAccount(id, handle);
      done('user.linked_account');
      await served.unlinkAccount(id, handle);
      done('user.unlinked_account');
      await served.linkAccount(id, handle);
      done('user.linked_account');
      await served.deleteUser(id);
      done('user.deleted');
    } catch (error) {
      if (!served.isKilled()) throw error;
      return;
    }
  }
}

/** Works until this many changes are acknowledged, then kills the process during the next ones. */
async function workUntil(served: EventProcess, acknowledged: Acknowledged, target: number, name: string) {
  const reached = Promise.withResolvers<void>();
  let left = target - [...acknowledged.values()].reduce((sum, types) => sum + types.length, 0);
  const note = (): void => {
    left -= 1;
    if (left <= 0) reached.resolve();
  };
  const work = Array.from({ length: clients }, (_, client) =>
    makeEvents(served, acknowledged, note, `${name}-${client}`),
  );
  await Promise.race([reached.promise, Promise.all(work)]);
  await served.kill();
  await Promise.all(work);
}

/** Advances the clock whenever all pending deliveries wait for a retry, until none is left. */
async function deliverTheRest(served: EventProcess, endpointId: string): Promise<void> {
  // Ensures that every event has a delivery, which the latest ones may not have yet.
  await served.passHour();
  for (;;) {
    const left = await served.left(endpointId);
    if (left === 'nothing') return;
    if (left === 'retries') await served.passHour();
  }
}

/** Every event of an acknowledged change arrived, and those of a user in the order of the changes. */
function expectAllInOrder(accepted: readonly Note[], acknowledged: Acknowledged): void {
  const firsts = new Map(accepted.toReversed().map((note) => [note.id, note]));
  const order = [...new Set(accepted.map(({ id }) => id))];
  const arrived = Map.groupBy(
    order.map((id) => firsts.get(id)!),
    ({ userId }) => userId,
  );
  for (const [userId, types] of acknowledged) {
    const came = (arrived.get(userId) ?? []).map(({ body }) => body.type);
    // One more change may have been committed than acknowledged.
    expect(came.slice(0, types.length), userId).toEqual(types);
    expect(came.length - types.length, userId).toBeLessThanOrEqual(1);
  }
}

/** No event was sent before the one before it was accepted, nor again after the one behind it was sent. */
function expectNoneOvertook(notes: readonly Note[]): void {
  for (const own of Map.groupBy(notes, ({ userId }) => userId).values()) {
    const ids = own.map(({ id }) => id);
    const runs = ids.filter((id, index) => id !== ids[index - 1]);
    expect(new Set(runs).size, ids.join(' ')).toBe(runs.length);
    for (const [index, note] of own.entries()) {
      if (index > 0 && note.id !== own[index - 1]!.id) expect(own[index - 1]!.isAccepted).toBe(true);
    }
  }
}

test.for(databaseKinds)(
  'killed processes and a failing endpoint: no event is lost or out of order, on %s',
  { timeout: 7_200_000 },
  async (kind, { annotate }) => {
    await using start = processesOn[kind]();
    const notes: Note[] = [];
    const faults: unknown[] = [];
    let secret = '';
    const reply = flakyReply(notes, () => secret);
    await using receiver = await startWebhookReceiver((received, response) => {
      try {
        reply(received, response);
      } catch (error) {
        faults.push(error);
        response.destroy();
      }
    });
    const acknowledged: Acknowledged = new Map();
    let endpointId = '';
    for (let kill = 0; kill < kills; kill += 1) {
      const served = await start();
      if (kill === 0) ({ id: endpointId, secret } = await served.makeEndpoint(receiver.url));
      await workUntil(served, acknowledged, Math.ceil(((kill + 1) * eventCount) / kills), `kill-${kill}`);
    }
    const last = await start();
    await deliverTheRest(last, endpointId);
    await last.kill();

    // Both verifiers accepted every signature on arrival.
    expect(faults).toEqual([]);
    const accepted = notes.filter(({ isAccepted }) => isAccepted);
    expectAllInOrder(accepted, acknowledged);
    expectNoneOvertook(notes);
    const count = new Set(accepted.map(({ id }) => id)).size;
    const duplicates = accepted.length - count;
    expect(duplicates).toBeLessThanOrEqual(kills * underWay);
    const failed = notes.length - accepted.length;
    noteFigure({ database: kind, events: count, kills, requests: notes.length, failed, duplicates });
    await annotate(
      `${kind}: ${count} events, ${kills} kills: ${notes.length} requests, ${failed} of them failed, 0 lost, ${duplicates} duplicates`,
    );
  },
);
