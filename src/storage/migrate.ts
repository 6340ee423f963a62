import { migrations as released } from './migrations/migrations.ts';
import { MIGRATIONS_TABLE } from './migrations/migrations-table.ts';
import type { SchemaMigration } from './migrations/schema-migration.ts';
import type { Orm } from './open-database.ts';

/** Any number, so long as every version of this program locks on the same one. */
const MIGRATION_LOCK = 4_010_158;

/**
 * Brings a PostgreSQL database to this version's schema. Of several processes that try at once one does it and the
 * others wait. It needs one connection, and it leaves the schema as it was when a migration fails.
 *
 * @param migrations those of this version, if left out.
 * @returns the names of the migrations that were run, in order.
 */
export async function migrate(orm: Orm, migrations = released): Promise<string[]> {
  const migrator = await prepareMigrator(orm, migrations);
  return orm.em.fork().transactional(async (em) => {
    await em.execute('select pg_advisory_xact_lock(?)', [MIGRATION_LOCK]);
    const run = await migrator.up({ transaction: em.getTransactionContext() });
    return run.map((migration) => migration.name);
  });
}

/** The names of the migrations that this database still lacks. */
export async function pendingMigrations(orm: Orm): Promise<string[]> {
  const migrator = await prepareMigrator(orm, released);
  const pending = await migrator.getPending();
  return pending.map((migration) => migration.name);
}

/** The library of migrations is loaded only where one is run or looked for. */
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
  // NOTE: this replaces the ORM's defaults, it is not merged with them.
  orm.config.set('migrations', {
    migrationsList,
    tableName: MIGRATIONS_TABLE,
    snapshot: false,
    silent: true,
    transactional: true,
    allOrNothing: true,
    disableForeignKeys: false,
  });
  // NOTE: `orm.migrator` would keep the list of the first call.
  const migrator = new Migrator(orm.em);
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
