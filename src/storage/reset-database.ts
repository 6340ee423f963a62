import type { Database } from './open-database.ts';

/** The master key outlives the data that it seals. */
const KEPT = new Set(['master_key_checks']);

/**
 * Empties every table, quickly while they are small, and starts sequences anew.
 *
 * NOTE: rows are deleted one table at a time; on PostgreSQL too, where truncating many small tables is slower.
 */
export async function resetDatabase({ kind, orm }: Pick<Database, 'kind' | 'orm'>): Promise<void> {
  const tables = [...orm.getMetadata().getAll().values()]
    .map((entity) => entity.tableName)
    .filter((table) => !KEPT.has(table));
  await orm.em.fork().transactional(async (em) => {
    for (const table of tables) await em.execute(`delete from "${table}"`);
    if (kind === 'sqlite') await em.execute('delete from sqlite_sequence');
    else await em.execute('alter sequence outbox_events_sequence_seq restart');
  });
}
