import { AsyncLocalStorage } from 'node:async_hooks';
import type { Pool, PoolClient } from 'pg';
import type { KeyStore } from '../../src/ports/key-store.ts';
import { serverDriver } from './postgres/server-driver.ts';

interface Request {
  readonly name: string;
  held: number;
}

const requests = new AsyncLocalStorage<Request>();

/**
 * Runs one request, which may hold only one PostgreSQL connection at a time. A second connection makes it fail. If
 * every request held one connection while it waited for another, all of them would wait forever as soon as they held
 * all connections.
 */
export function withOneConnection<T>(name: string, work: () => Promise<T>): Promise<T> {
  return requests.run({ name, held: 0 }, work);
}

/**
 * Wraps a key store so that it fails when a request uses it while the request holds a connection. A remote key store
 * may hang.
 */
export function askedWithoutConnection(keyStore: KeyStore): KeyStore {
  return new Proxy(keyStore, {
    get(target, name) {
      const member = target[name as keyof KeyStore];
      if (typeof member !== 'function') return member;
      return async (...args: never[]) => {
        const request = requests.getStore();
        if (request !== undefined && request.held > 0)
          throw new Error(
            `\`${request.name}\` asks the key store while it holds a connection: ${String(name)}`,
          );
        return (member as (...args: never[]) => unknown).apply(target, args);
      };
    },
  });
}

const connect = serverDriver.Pool.prototype.connect as (this: Pool) => Promise<PoolClient>;

// Counts the connections that a request takes from any pool. Connections outside of requests are not counted.
serverDriver.Pool.prototype.connect = function (this: Pool, ...callback: never[]) {
  const request = requests.getStore();
  if (request === undefined || callback.length > 0) return connect.apply(this, callback as never);
  return take(this, request);
} as typeof serverDriver.Pool.prototype.connect;

async function take(pool: Pool, request: Request): Promise<PoolClient> {
  if (request.held > 0) throw new Error(`\`${request.name}\` takes a second connection while it holds one`);
  request.held += 1;
  try {
    const client = await connect.call(pool);
    const { release } = client;
    client.release = (error) => {
      request.held -= 1;
      release.call(client, error);
    };
    return client;
  } catch (error) {
    request.held -= 1;
    throw error;
  }
}
