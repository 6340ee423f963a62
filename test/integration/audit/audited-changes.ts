import { EventType, type TransactionEventArgs } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';

interface Watched {
  readonly orm: { readonly em: SqlEntityManager };
}

interface Seen {
  readonly changed: string;
  readonly columns: string | null;
}

/**
 * How the server works, which is not recorded: stored responses, what a request used, deliveries, positions, and the
 * log itself. A lease, a due time or a counter of failures is a column of other tables.
 */
const ownTables =
  /^(audit_\w+|idempotency_records|used_signatures|wallet_uses|use_volumes|server_processes|chain_positions|webhook_deliveries|sqlite_sequence) /;
const ownColumns =
  /^(next_check_at_ms|next_due_at_ms|leased_until_ms|lease_owner|claimed_by|fanned_out_at_ms|failing_since_ms|failing_day_count|last_failing_day|checked_at_ms|version)$/;

/** Returns whether the stack of a commit is one of the world outside, and not of a job that it has started. */
function isOutside(stack: string): boolean {
  if (/src\/jobs\//.test(stack)) return false;
  return /src\/(sandbox\/handlers|compose\/control-plane)|test\/support\/cards/.test(stack);
}

/**
 * Compares, at each commit on SQLite, what the transaction has changed with the records that it has written. Triggers
 * see the changes, so that no code can forget to report one. They are temporary: the schema stays as it is.
 *
 * Operations of the control plane stand for the world outside, and are not recorded. Nor are the preparations of tests.
 *
 * @returns the changes without a record by `table operation columns`, with the stack of their commit.
 */
export async function watchChanges({ orm }: Watched): Promise<Map<string, string>> {
  const unrecorded = new Map<string, string>();
  await installTriggers(orm.em.fork());
  orm.em.getEventManager().registerSubscriber({
    [EventType.beforeTransactionCommit]: async ({ em, transaction }: TransactionEventArgs) => {
      // A savepoint: the transaction around it goes on.
      if ((transaction as { savepointName?: string } | undefined)?.savepointName !== undefined) return;
      const { stack = '' } = new Error('committed');
      const database = em as SqlEntityManager;
      const seen = await database.execute<Seen[]>('select distinct changed, columns from seen_changes');
      await database.execute('delete from seen_changes');
      if (seen.some(({ changed }) => changed === 'audit_pending insert')) return;
      if (isOutside(stack)) return;
      for (const { changed, columns } of seen) {
        const names = columns?.split(' ').filter((name) => name !== '') ?? [];
        const isUpdate = changed.endsWith(' update');
        if (ownTables.test(changed) || (isUpdate && names.every((name) => ownColumns.test(name)))) continue;
        unrecorded.set([changed, ...names].join(' '), stack);
      }
    },
  });
  return unrecorded;
}

async function installTriggers(em: SqlEntityManager): Promise<void> {
  await em.execute('create temp table seen_changes (changed text not null, columns text)');
  const tables = await em.execute<{ name: string }[]>(
    "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'",
  );
  for (const { name } of tables) {
    const columns = await em.execute<{ name: string }[]>(`select name from pragma_table_info('${name}')`);
    const changed = columns
      .map(
        ({ name: column }) =>
          `case when old."${column}" is not new."${column}" then '${column} ' else '' end`,
      )
      .join(' || ');
    for (const [operation, what] of [
      ['insert', 'null'],
      ['update', changed],
      ['delete', 'null'],
    ] as const) {
      await em.execute(
        `create temp trigger "seen_${operation}_${name}" after ${operation} on main."${name}" begin
           insert into seen_changes values ('${name} ${operation}', ${what});
         end`,
      );
    }
  }
}
