import type { SqlEntityManager } from '@mikro-orm/sql';
import {
  countWaitingDeliveries,
  type WaitingDeliveries,
} from '../../domain/access/webhooks/due-deliveries.ts';
import type { Tables } from '../../domain/tables.ts';

/** Rows of each kind that the report lists; the rest is counted. */
const MOST_LISTED = 1_000;

interface Listed<Row> {
  readonly rows: readonly Row[];
  /** How many there are in all. */
  readonly count: number;
}

/** The work that the database was doing when it was backed up, and may have finished since. */
export interface InDoubt {
  /** Signed, and not final: broadcast or not. */
  readonly transactions: Listed<{
    readonly id: string;
    readonly wallet_id: string;
    readonly caip2: string;
    readonly status: string;
    readonly hash: string | null;
    readonly nonce: number | null;
  }>;
  readonly actions: Listed<{ readonly id: string; readonly type: string; readonly wallet_id: string }>;
  /** Proposed and not executed. */
  readonly intents: Listed<{ readonly id: string; readonly status: string; readonly operation: string }>;
  /** Automations that were about to run. */
  readonly executions: Listed<{ readonly id: string; readonly wallet_id: string; readonly caip2: string }>;
  readonly deliveries: WaitingDeliveries;
}

/** Reads what is in doubt as far as the database knows. */
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
