import { migrations as released } from './migrations/migrations.ts';
import { MIGRATIONS_TABLE, type SchemaMigration } from './migrations/schema-migration.ts';
import type { Orm } from './open-database.ts';
import { splitStatements } from './schema/migration-statements.ts';

/**
 * The key of the advisory lock that keeps two processes from migrating at the same time. The number is arbitrary, but
 * must never change, because different versions must exclude each other.
 */
const MIGRATION_LOCK = 4_010_158;

const CREATE_TABLE = `create table if not exists ${MIGRATIONS_TABLE} (
  id serial primary key,
  name varchar(255) not null,
  executed_at timestamptz(6) not null default current_timestamp(6)
)`;

/**
 * Migrates a PostgreSQL database to the schema of this version, over one connection. If several processes migrate at
 * the same time, one runs the migrations and the others wait. If a migration fails, the schema stays unchanged.
 *
 * @param migrations default: the migrations of this version.
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

/** Returns the names of the migrations that have not run on this database. */
export async function pendingMigrations(orm: Orm): Promise<string[]> {
  const migrator = await prepareMigrator(orm, released);
  const pending = await migrator.getPending();
  return pending.map((migration) => migration.name);
}

/** Creates a migrator for these migrations. Loads the migration library on demand. */
async function prepareMigrator(orm: Orm, migrations: readonly SchemaMigration[]): Promise<Orm['migrator']> {
  const { Migration, Migrator } = await import('@mikro-orm/migrations');
  const migrationsList = migrations.map(({ name, postgres }) => ({
    name,
    class: class SqlMigration extends Migration {
      override up(): void {
        // A node that passes statements on to other nodes, such as a coordinator of Citus, refuses several statements
        // in one string.
        for (const statement of splitStatements(postgres)) this.addSql(statement);
      }
    },
  }));
  // NOTE: these options replace the ORM's defaults instead of extending them.
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
  await makeMigrationsTable(orm);
  Object.assign(migrator.getStorage(), { ensureTable: () => Promise.resolve() });
  // Read the list before the transaction of the migrations begins: the first read needs a connection of its own.
  await migrator.getExecuted();
  return migrator;
}

/**
 * Creates the table of applied migrations in the first schema of the `search_path`, where all other tables are.
 *
 * NOTE: the library would look for it only in `public`. Another process may create the table at the same time, which
 * `if not exists` does not prevent.
 */
async function makeMigrationsTable(orm: Orm): Promise<void> {
  const [found] = await orm.em
    .fork()
    .execute<{ made: boolean }[]>(`select to_regclass('${MIGRATIONS_TABLE}') is not null as made`);
  if (found?.made === true) return;
  const create = () => orm.em.fork().execute(CREATE_TABLE);
  await create().catch(create);
}
