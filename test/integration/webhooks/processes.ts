import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { LEASE_MS } from '../../../src/domain/access/webhooks/fan-out-events.ts';
import type { WebhookDeliveriesListResponse } from '../../../src/generated/schemas.ts';
import type { DatabaseKind } from '../../support/databases.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';
import { serveCustos, temporaryFolder } from '../../support/run-custos.ts';
import type { Done, Order } from './event-process.ts';

/** A process that changes users and delivers the events of the changes. Every call rejects when it is killed. */
export interface EventProcess {
  makeEndpoint(url: string): Promise<{ readonly id: string; readonly secret: string }>;
  /** At most twenty, in one transaction. Resolves with their ids. */
  createUsers(emails: readonly string[]): Promise<string[]>;
  linkAccount(userId: string, handle: string): Promise<void>;
  unlinkAccount(userId: string, handle: string): Promise<void>;
  deleteUser(userId: string): Promise<void>;
  /** What is left to be sent to the endpoint. */
  left(endpointId: string): Promise<'nothing' | 'retries' | 'what is due'>;
  /** Advances the clock by an hour; afterwards every earlier event has a delivery. */
  passHour(): Promise<void>;
  /** Kills it immediately, whatever it is doing. */
  kill(): Promise<void>;
  isKilled(): boolean;
}

/** Starts one process after the other on the same database. */
export type StartProcess = () => Promise<EventProcess>;

/** The published sandbox on its own folder. */
function sandboxes(): StartProcess & AsyncDisposable {
  const folder = temporaryFolder();
  const start: StartProcess = async () => {
    const custos = await serveCustos(['sandbox', '--data', folder, '--quiet']);
    let isKilled = false;
    const call = async <Body>(method: string, path: string, body?: object): Promise<Body> => {
      const answer = await custos.call<Body>(method, path, body);
      if (answer.status >= 300) throw new Error(`${path} answered ${answer.status}: ${answer.text}`);
      return answer.body;
    };
    return {
      makeEndpoint: (url) => call('POST', '/v1/webhooks', { url }),
      async createUsers(addresses) {
        const users = addresses.map((address) => ({ linked_accounts: [{ type: 'email', address }] }));
        const made = await call<{ results: { id: string }[] }>('POST', '/v1/users/batch', { users });
        return made.results.map(({ id }) => id);
      },
      linkAccount: (id, handle) =>
        call('POST', `/v1/users/${id}/accounts`, { type: 'custom_auth', custom_user_id: handle }),
      unlinkAccount: (id, handle) =>
        call('POST', `/v1/users/${id}/accounts/unlink`, { type: 'custom_auth', handle }),
      deleteUser: (id) => call('DELETE', `/v1/users/${id}`),
      async left(endpointId) {
        // A sample is enough: asking for all would take as long as sending them.
        const path = `/v1/webhooks/${endpointId}/deliveries?status=pending&limit=5`;
        const { data } = await call<WebhookDeliveriesListResponse>('GET', path);
        if (data.length === 0) return 'nothing';
        const { now_ms: nowMs } = await call<{ now_ms: number }>('GET', '/_sandbox/clock');
        return data.every(({ next_attempt_at: atMs }) => atMs === null || atMs > nowMs)
          ? 'retries'
          : 'what is due';
      },
      passHour: () => call('PUT', '/_sandbox/clock', { advance_ms: 3_600_000 }),
      async kill() {
        isKilled = true;
        await custos.stop('SIGKILL');
      },
      isKilled: () => isKilled,
    };
  };
  return Object.assign(start, { [Symbol.asyncDispose]: async () => undefined });
}

/** A child process that executes orders. All its promises reject when it has ended. */
async function forkProcess(url: Promise<string>, owner: string) {
  const child = fork(join(import.meta.dirname, 'event-process.ts'), ['--url', await url, '--owner', owner]);
  const ended = once(child, 'exit');
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  child.on('message', ({ number, value }: Done) => {
    waiting.get(number)?.resolve(value);
    waiting.delete(number);
  });
  void ended.then(() => {
    for (const done of waiting.values()) done.reject(new Error('the process has ended'));
  });
  let [isKilled, count] = [false, 0];
  return {
    async order<Value>(verb: Order['verb'], about = '', handle = ''): Promise<Value> {
      count += 1;
      const done = Promise.withResolvers<unknown>();
      waiting.set(count, done);
      child.send({ number: count, verb, about, handle } satisfies Order, () => undefined);
      return (await done.promise) as Value;
    },
    async kill() {
      isKilled = true;
      child.kill('SIGKILL');
      await ended;
    },
    isKilled: () => isKilled,
  };
}

/** Custom processes on PostgreSQL, because production does not send to loopback. */
function onPostgres(): StartProcess & AsyncDisposable {
  const url = freshPostgres();
  let [starts, aheadMs] = [0, 0];
  const forkNext = () => forkProcess(url, `process-${starts}`);
  let next = forkNext();
  const start: StartProcess = async () => {
    const { order, kill, isKilled } = await next;
    starts += 1;
    // In the shadow of the work of this one.
    next = forkNext();
    // Waits until the lease of a killed process has expired.
    aheadMs += LEASE_MS;
    await order('begin', String(aheadMs));
    return {
      async makeEndpoint(url) {
        const made = await order<{ endpoint: { id: string }; secret: string }>('endpoint', url);
        return { id: made.endpoint.id, secret: made.secret };
      },
      createUsers: (addresses) => order('create', addresses.join(' ')),
      linkAccount: (id, handle) => order('link', id, handle),
      unlinkAccount: (id, handle) => order('unlink', id, handle),
      deleteUser: (id) => order('delete', id),
      left: () => order('pending'),
      passHour: () => {
        aheadMs += 3_600_000;
        return order('advance', '3600000');
      },
      kill,
      isKilled,
    };
  };
  const dispose = async () => (await next).kill();
  return Object.assign(start, { [Symbol.asyncDispose]: dispose });
}

export const processesOn: Readonly<Record<DatabaseKind, () => StartProcess & AsyncDisposable>> = {
  sqlite: sandboxes,
  postgres: onPostgres,
};
