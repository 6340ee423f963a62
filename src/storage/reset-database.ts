import type { Database } from './open-database.ts';

/** The master key outlives the data that it seals. */
const KEPT = new Set(['master_key_checks']);

/**
 * Empties every table and restarts the sequences. Fast for small tables.
 *
 * NOTE: deletes the rows of each table, because truncating many small tables of PostgreSQL is slower.
 */
export async function resetDatabase({ kind, orm }: Pick<Database, 'kind' | 'orm'>): Promise<void> {
  const tables = [...orm.getMetadata().getAll().values()].filter(({ tableName }) => !KEPT.has(tableName));
  const sequences = tables.flatMap(({ tableName, props }) =>
    props
      .filter((property) => property.autoincrement)
      .map((property) => `${tableName}_${property.fieldNames[0]}_seq`),
  );
  await orm.em.fork().transactional(async (em) => {
    for (const { tableName } of tables) await em.execute(`delete from "${tableName}"`);
    if (kind === 'sqlite') await em.execute('delete from sqlite_sequence');
    else for (const sequence of sequences) await em.execute(`alter sequence "${sequence}" restart`);
  });
}
