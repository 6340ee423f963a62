import { migrations as released } from './migrations/migrations.ts';
import { MIGRATIONS_TABLE } from './migrations/migrations-table.ts';
import type { SchemaMigration } from './migrations/schema-migration.ts';
import type { Orm } from './open-database.ts';

/** Any number, as long as all versions of this program use the same one. */
const MIGRATION_LOCK = 4_010_158;

/**
 * Migrates a PostgreSQL database to the schema of this version. If several processes try at once, one migrates and
 * the others wait. Needs one connection. If a migration fails, the schema stays unchanged.
 *
 * @param migrations default: those of this version.
 * @returns the names of the migrations that ran, in order.
 */
export async function migrate(orm: Orm, migrations = released): Promise<string[]> {
  const migrator = await prepareMigrator(orm, migrations);
  return orm.em.fork().transactional(async (em) => {
    await em.execute('select pg_advisory_xact_lock(?)', [MIGRATION_LOCK]);
    const run = await migrator.up({ transaction: em.getTransactionContext() });
    return run.map((migration) => migration.name);
  });
}

/** The names of the migrations that have not run on this database. */
export async function pendingMigrations(orm: Orm): Promise<string[]> {
  const migrator = await prepareMigrator(orm, released);
  const pending = await migrator.getPending();
  return pending.map((migration) => migration.name);
}

/** Loads the migration library only when needed. */
async function prepareMigrator(orm: Orm, migrations: readonly SchemaMigration[]): Promise<Orm['migrator']> {
  const { Migration, Migrator } = await import('@mikro-orm/migrations');
  const migrationsList = migrations.map(({ name, postgres }) => ({
    name,
    class: class SqlMigration extends Migration {
      override up(): void {
        this.addSql(postgres);
      }
    },
  }));
  // NOTE: this replaces the ORM's defaults instead of being merged with them.
  orm.config.set('migrations', {
    migrationsList,
    tableName: MIGRATIONS_TABLE,
    snapshot: false,
    silent: true,
    transactional: true,
    allOrNothing: true,
    disableForeignKeys: false,
  });
  // NOTE: `orm.migrator` would cache the list of the first call.
  const migrator = new Migrator(orm.em);
  await makeMigrationsTable(migrator);
  return migrator;
}

/** The library creates its table without a lock, so a concurrent process may have created it already. */
async function makeMigrationsTable(migrator: Orm['migrator']): Promise<void> {
  try {
    await migrator.getExecuted();
  } catch {
    await migrator.getExecuted();
  }
}
