import { parseArgs } from 'node:util';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { systemEntropy } from '../../../src/adapters/runtime.ts';
import { anyAddress, createWebhookSender } from '../../../src/adapters/webhook-http.ts';
import { startBesideRequests } from '../../../src/compose/jobs.ts';
import { createApp } from '../../../src/domain/access/apps/app.ts';
import { createWebhookEndpoint } from '../../../src/domain/access/webhooks/webhook-endpoint.ts';
import { entities, type Tables } from '../../../src/domain/tables.ts';
import { linkAccount, unlinkAccount } from '../../../src/domain/wallets/users/linked-accounts.ts';
import { createUser, deleteUser } from '../../../src/domain/wallets/users/user.ts';
import type { JobRunner } from '../../../src/jobs/runner.ts';
import { createKeyStore } from '../../../src/keys/key-operations.ts';
import { localMasterKey } from '../../../src/keys/master-keys.ts';
import type { OperationContext } from '../../../src/ports/operation-context.ts';
import { inUnitOf, type OpenUnit, unitsOf } from '../../../src/server/unit-of-work.ts';
import { openDatabase } from '../../../src/storage/open-database.ts';
import { contextOf, services as others } from '../contexts.ts';

// A process on PostgreSQL that changes users and delivers their events like a production server, with a guard that
// allows loopback. It receives orders from its parent process.

/** The order of the parent process. */
export interface Order {
  readonly number: number;
  readonly verb: 'begin' | 'endpoint' | 'create' | 'link' | 'unlink' | 'delete' | 'advance' | 'pending';
  /** The URL of an endpoint, email addresses, a user id, or the advance of the clock in ms. */
  readonly about: string;
  /** Of the account to link. */
  readonly handle: string;
}

/** The result, after the commit. */
export interface Done {
  readonly number: number;
  readonly value: unknown;
}

const { values } = parseArgs({
  options: { url: { type: 'string' }, owner: { type: 'string' } },
});
let aheadMs = 0;
const clock = { now: () => Date.now() + aheadMs };
const services = {
  ...others,
  clock,
  processId: values.owner!,
  // The next process must open what this one has sealed.
  keyStore: createKeyStore({
    masterKeys: [localMasterKey('test', Buffer.alloc(32, 7), systemEntropy)],
    entropy: systemEntropy,
  }),
  webhooks: createWebhookSender({ guard: anyAddress }),
};
const database = await openDatabase(entities, { kind: 'postgres', url: values.url!, poolSize: 8 });
let openUnit: OpenUnit = unitsOf(database);
let jobs: JobRunner | undefined;

const contextIn = (em: SqlEntityManager): OperationContext => ({
  ...contextOf(em, 'acme', clock.now()),
  ...services,
});

async function work({ verb, about, handle }: Order): Promise<unknown> {
  if (verb === 'advance' || verb === 'begin') aheadMs += Number(about);
  // It is loaded while the previous process still runs, and waits for its turn.
  if (verb === 'begin') ({ openUnit, jobs } = startBesideRequests(services, openUnit));
  if (verb === 'advance') return jobs?.settle();
  return inUnitOf(openUnit)(async (em) => {
    const context = contextIn(em);
    if (verb === 'endpoint') {
      await createApp(context, { id: context.app.id });
      return createWebhookEndpoint(context, { url: about });
    }
    if (verb === 'create') {
      const ids: string[] = [];
      for (const address of about.split(' ')) {
        const user = await createUser(context, { linked_accounts: [{ type: 'email', address }] });
        ids.push(user.row.id);
      }
      return ids;
    }
    if (verb === 'link') await linkAccount(context, about, { type: 'custom_auth', custom_user_id: handle });
    if (verb === 'unlink') await unlinkAccount(context, about, { type: 'custom_auth', handle });
    if (verb === 'delete') await deleteUser(context, about);
    if (verb !== 'pending') return undefined;
    const next = await em
      .getKysely<Tables>()
      .selectFrom('webhook_deliveries')
      .select('next_attempt_at_ms')
      .where('next_attempt_at_ms', 'is not', null)
      .orderBy('next_attempt_at_ms')
      .limit(1)
      .executeTakeFirst();
    if (next === undefined) return 'nothing';
    return next.next_attempt_at_ms! > context.nowMs ? 'retries' : 'what is due';
  });
}

process.on('message', (order: Order) => {
  void work(order).then((value) => process.send?.({ number: order.number, value } satisfies Done));
});
process.on('disconnect', () => process.exit());
