import type { SqlEntityManager } from '@mikro-orm/sql';
import {
  countWaitingDeliveries,
  type WaitingDeliveries,
} from '../../domain/access/webhooks/due-deliveries.ts';
import type { Tables } from '../../domain/tables.ts';

/** The maximum number of rows of each kind in the report. Further rows are only counted. */
const MOST_LISTED = 1_000;

interface Listed<Row> {
  readonly rows: readonly Row[];
  /** The number of all rows. */
  readonly count: number;
}

/** The work that was in progress when the database was backed up, and that may have been finished since. */
export interface InDoubt {
  /** Transactions that were signed, but are not final. They may have been broadcast. */
  readonly transactions: Listed<{
    readonly id: string;
    readonly wallet_id: string;
    readonly caip2: string;
    readonly status: string;
    readonly hash: string | null;
    readonly nonce: number | null;
  }>;
  readonly actions: Listed<{ readonly id: string; readonly type: string; readonly wallet_id: string }>;
  /** Intents that were proposed, but not executed. */
  readonly intents: Listed<{ readonly id: string; readonly status: string; readonly operation: string }>;
  /** Executions of automations that were due. */
  readonly executions: Listed<{ readonly id: string; readonly wallet_id: string; readonly caip2: string }>;
  readonly deliveries: WaitingDeliveries;
}

/** Reads the work in doubt, as far as the database contains it. */
export async function readInDoubt(em: SqlEntityManager): Promise<InDoubt> {
  const database = em.getKysely<Tables>();
  const open = database.selectFrom('transactions').where('next_check_at_ms', 'is not', null);
  const acting = database.selectFrom('wallet_actions').where('status', '=', 'pending');
  const proposed = database.selectFrom('intents').where('status', 'in', ['pending', 'processing']);
  const due = database.selectFrom('wallet_automation_executions').where('next_run_at_ms', 'is not', null);
  const count = async (query: { execute(): Promise<{ count: unknown }[]> }): Promise<number> =>
    Number((await query.execute())[0]?.count ?? 0);
  return {
    transactions: {
      rows: (
        await open
          .select(['id', 'wallet_id', 'caip2', 'status', 'transaction_hash', 'user_operation_hash', 'nonce'])
          .orderBy('created_at_ms')
          .limit(MOST_LISTED)
          .execute()
      ).map(({ transaction_hash, user_operation_hash, ...row }) => ({
        ...row,
        nonce: row.nonce === null ? null : Number(row.nonce),
        hash: user_operation_hash ?? transaction_hash,
      })),
      count: await count(open.select((select) => select.fn.countAll().as('count'))),
    },
    actions: {
      rows: await acting
        .select(['id', 'type', 'wallet_id'])
        .orderBy('created_at_ms')
        .limit(MOST_LISTED)
        .execute(),
      count: await count(acting.select((select) => select.fn.countAll().as('count'))),
    },
    intents: {
      rows: await proposed
        .select(['id', 'status', 'operation_id as operation'])
        .orderBy('created_at_ms')
        .limit(MOST_LISTED)
        .execute(),
      count: await count(proposed.select((select) => select.fn.countAll().as('count'))),
    },
    executions: {
      rows: await due
        .select(['id', 'wallet_id', 'caip2'])
        .orderBy('created_at_ms')
        .limit(MOST_LISTED)
        .execute(),
      count: await count(due.select((select) => select.fn.countAll().as('count'))),
    },
    deliveries: await countWaitingDeliveries(em),
  };
}
