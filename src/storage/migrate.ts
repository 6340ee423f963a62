import { MIGRATIONS_TABLE } from './migrations/migrations-table.ts';
import type { Orm } from './open-database.ts';

/** Any number, so long as every version of this program locks on the same one. */
const MIGRATION_LOCK = 4_010_158;

/**
 * Brings a PostgreSQL database to this version's schema. Of several processes that try at once one does it and the
 * others wait. It needs one connection, and it leaves the schema as it was when a migration fails.
 *
 * @returns the names of the migrations that were run, in order.
 */
export async function migrate(orm: Orm): Promise<string[]> {
  const migrator = await prepareMigrator(orm);
  return orm.em.fork().transactional(async (em) => {
    await em.execute('select pg_advisory_xact_lock(?)', [MIGRATION_LOCK]);
    const run = await migrator.up({ transaction: em.getTransactionContext() });
    return run.map((migration) => migration.name);
  });
}

/** The names of the migrations that this database still lacks. */
export async function pendingMigrations(orm: Orm): Promise<string[]> {
  const migrator = await prepareMigrator(orm);
  const pending = await migrator.getPending();
  return pending.map((migration) => migration.name);
}

/** Migrations load their library only where they are asked for. */
async function prepareMigrator(orm: Orm): Promise<Orm['migrator']> {
  const [{ Migrator }, { migrations }] = await Promise.all([
    import('@mikro-orm/migrations'),
    import('./migrations/migrations.ts'),
  ]);
  // NOTE: this replaces the ORM's defaults, it is not merged with them.
  orm.config.set('migrations', {
    migrationsList: migrations,
    tableName: MIGRATIONS_TABLE,
    snapshot: false,
    silent: true,
    transactional: true,
    allOrNothing: true,
    disableForeignKeys: false,
  });
  Migrator.register(orm);
  // NOTE: asked for once: every time the ORM is asked it makes another migrator, which begins from nothing.
  const { migrator } = orm;
  await makeMigrationsTable(migrator);
  return migrator;
}

/** The library makes its table outside of any lock; a process that comes second finds it made. */
async function makeMigrationsTable(migrator: Orm['migrator']): Promise<void> {
  try {
    await migrator.getExecuted();
  } catch {
    await migrator.getExecuted();
  }
}
