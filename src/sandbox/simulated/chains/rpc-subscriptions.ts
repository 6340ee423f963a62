import type { Log } from '../../../ports/runtime.ts';
import { LIMIT_EXCEEDED, type RpcConnection, RpcError } from './rpc-calls.ts';
import { makeTurns } from './turns.ts';

/** Stores the subscriptions of one chain with their connections, and schedules their notifications. */

/** CHOICE: the maximum number of subscriptions per connection and chain. */
const MAX_SUBSCRIPTIONS = 100;
/** CHOICE: subscribers receive new notifications every 50 ms. */
const PUSH_MS = 50;

interface Subscription<Content> {
  readonly content: Content;
  readonly connection: RpcConnection;
}

export interface Subscriptions<Id, Content> {
  add(connection: RpcConnection, id: Id, content: Content): void;
  /** Removes a subscription. Returns whether the connection had it. */
  remove(connection: RpcConnection, id: Id): boolean;
  contents(): readonly Content[];
  isEmpty(): boolean;
  /** Calls `tell` for each subscription, and pauses for other work in between. */
  forEach(tell: (id: Id, content: Content, connection: RpcConnection) => unknown): Promise<void>;
}

/**
 * Creates an empty set of subscriptions.
 *
 * @param push notifies the subscribers of what has changed. Only one push runs at a time.
 */
export function makeSubscriptions<Id, Content>(
  push: () => Promise<void>,
  { caip2, log }: { readonly caip2: string; readonly log: Log | undefined },
): Subscriptions<Id, Content> {
  const subscriptions = new Map<Id, Subscription<Content>>();
  const byConnection = new WeakMap<RpcConnection, Set<Id>>();
  let isScheduled = false;
  let lastReport = '';

  /** Logs an error. If pushes keep failing for the same reason, it is logged once. */
  function report(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    if (reason === lastReport) return;
    lastReport = reason;
    log?.warn({ caip2, error: reason }, 'failed to notify subscribers');
  }

  /** Schedules the next push if there are subscribers. */
  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    setTimeout(async () => {
      // A push fails if the store was closed or replaced. The next push reads the new content.
      await push().catch(report);
      isScheduled = false;
      if (subscriptions.size > 0) schedule();
    }, PUSH_MS).unref();
  }

  return {
    add(connection, id, content) {
      const own = byConnection.get(connection) ?? new Set();
      if (own.size >= MAX_SUBSCRIPTIONS) {
        throw new RpcError(LIMIT_EXCEEDED, `expected at most ${MAX_SUBSCRIPTIONS} subscriptions`);
      }
      // The connection may have closed while its call ran.
      if (connection.closed.aborted) return;
      if (!byConnection.has(connection)) {
        connection.closed.addEventListener('abort', () => {
          for (const each of own) subscriptions.delete(each);
        });
      }
      byConnection.set(connection, own.add(id));
      subscriptions.set(id, { content, connection });
      schedule();
    },
    remove(connection, id) {
      return byConnection.get(connection)?.delete(id) === true && subscriptions.delete(id);
    },
    contents: () => Array.from(subscriptions.values(), ({ content }) => content),
    isEmpty: () => subscriptions.size === 0,
    async forEach(tell) {
      const turn = makeTurns();
      for (const [id, { content, connection }] of subscriptions) {
        await turn();
        try {
          await tell(id, content, connection);
        } catch (error) {
          // Continue with the other subscribers.
          report(error);
        }
      }
    },
  };
}
