import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MetadataStorage, MikroORM, Options } from '@mikro-orm/core';
import type { AbstractSqlDriver, SqlEntityManager } from '@mikro-orm/sql';
import type { Database as SqliteHandle } from 'better-sqlite3';
import { MIGRATIONS_TABLE, RATE_LEVELS_TABLE, type SchemaMigration } from './migrations/schema-migration.ts';
import type { Responses } from './postgres/pipelining.ts';
import type { PostgresTimeouts } from './postgres-dialect.ts';
import type { Readiness } from './readiness.ts';

/** Creates the ORM for one kind of database. */
type CreateOrm = (options: Partial<Pick<Options, 'entities' | 'discovery'>>) => Orm;

/**
 * The first ORM for each list of entities and kind of database. It has discovered the entities and generated functions
 * for them.
 */
const discovered = new WeakMap<Entities, Map<Database['kind'], Orm>>();

/** The metadata to which the prototypes of entities currently refer. */
let decoratedWith: MetadataStorage | undefined;

/**
 * Creates the ORM of a database. The first ORM of a kind in this process discovers the entities. Later ones share the
 * result, because discovery does not depend on the database, and takes most of the time of opening an empty one.
 *
 * NOTE: sets up the driver as the constructor of MikroORM does after its discovery.
 */
function openOrm(kind: Database['kind'], entities: Entities, create: CreateOrm): Orm {
  const known = discovered.get(entities) ?? new Map<Database['kind'], Orm>();
  discovered.set(entities, known);
  const first = known.get(kind);
  if (first === undefined) {
    const made = create({ entities: [...entities] });
    decoratedWith = made.getMetadata();
    known.set(kind, made);
    return withCheapForks(made);
  }
  const metadata = first.getMetadata();
  const orm = create({ entities: [...entities], discovery: { skipSyncDiscovery: true } });
  Object.assign(orm.config, {
    getComparator: () => first.config.getComparator(metadata),
    getHydrator: () => first.config.getHydrator(metadata),
  });
  orm.driver.setMetadata(metadata);
  const em = orm.driver.createEntityManager();
  Object.assign(em, { global: true });
  // Prototypes can refer to the metadata of one kind of database only: of the one that was opened last.
  if (decoratedWith !== metadata) metadata.decorate(em);
  decoratedWith = metadata;
  return withCheapForks(Object.assign(orm, { em, getMetadata: () => metadata }));
}

/**
 * Makes forks of the entity manager cheaper.
 *
 * HOT: each request forks the entity manager, which sets and resets an option of the configuration. Each time, MikroORM
 * copies settings into the environment and the logger, which takes a tenth of the CPU of reading a wallet. The settings
 * do not change after the ORM is open.
 */
function withCheapForks(orm: Orm): Orm {
  return Object.assign(orm, { config: Object.assign(orm.config, { sync: () => undefined }) });
}

export type DatabaseOptions = {
  /** Called for every statement that fails. */
  onFailure?: ((error: unknown) => void) | undefined;
} & (
  | {
      kind: 'sqlite';
      /** The path of the file, or `:memory:`. */
      file: string;
      /** The initial content of a database in memory. */
      image?: Buffer | undefined;
      /** The migrations that the file gets. Default: the migrations of this version. */
      migrations?: readonly SchemaMigration[];
      /** Opens the handle. Simulations pass a function whose handles fail on purpose. */
      openHandle?: ((content: Buffer | string) => SqliteHandle) | undefined;
    }
  | {
      kind: 'postgres';
      url: string;
      /** The maximum number of connections. */
      poolSize: number;
      /** `none` for migrations, whose statements may run for a long time. Default: `defaultTimeouts`. */
      timeouts?: PostgresTimeouts | 'none';
      /** Records when the server responds. Pools that connect to the same server share it. */
      responses?: Responses;
      /**
       * How long a message to the database waits while the server is silent on all connections. Default: only the
       * time limit of the message itself applies.
       */
      quietMs?: number;
      /** Called when an idle connection breaks. When a connection breaks during a query, the query rejects instead. */
      onConnectionError?: (error: Error) => void;
    }
);

export type Orm = MikroORM<AbstractSqlDriver, SqlEntityManager>;

/** An open database: one MikroORM, whose `em` is forked for each unit of work. */
export interface Database {
  readonly kind: DatabaseOptions['kind'];
  readonly orm: Orm;
  /** Checks whether PostgreSQL is ready. Undefined for SQLite, which is a local file. */
  readonly readiness?: Readiness;
  /** Returns the state of the pool. Undefined for SQLite, which has one connection. */
  readonly connections?: () => ConnectionCounts;
  /** Saves and loads the whole content. Undefined for PostgreSQL. */
  readonly images?: DatabaseImages;
  close(): Promise<void>;
}

interface ConnectionCounts {
  readonly most: number;
  readonly busy: number;
  readonly idle: number;
  /**
   * The number of connections that were abandoned because they were silent for too long, while PostgreSQL still works
   * for them.
   */
  readonly hung: number;
  /** The number of callers that wait for a connection. */
  readonly waiting: number;
}

/** Saves and restores the whole content of a database. Waits until no transaction is open. */
export interface DatabaseImages {
  save(): Promise<Buffer>;
  /** Replaces the content. Existing forks of the entity manager must not be used afterwards. */
  load(image: Buffer): Promise<void>;
}

/**
 * Opens a database. A SQLite file is migrated to the schema of this version. PostgreSQL is only migrated by `migrate`.
 *
 * NOTE: uses the constructor, because `MikroORM.init()` searches for optional packages and would load a second copy of
 * the ORM next to a bundled one.
 *
 * @throws StorageVersionError for a SQLite file whose schema cannot be migrated.
 */
export function openDatabase(entities: Entities, options: DatabaseOptions): Promise<Database> {
  return options.kind === 'sqlite' ? openSqlite(options, entities) : openPostgres(options, entities);
}

/** The tables of a database: the entities of the domain. */
export type Entities = readonly NonNullable<Options['entities']>[number][];

const settings = {
  ensureDatabase: false,
  allowGlobalContext: false,
  debug: false,
} satisfies Partial<Options>;

/** The `user_version` of files with the first schema, written before migrations were counted. */
const UNCOUNTED_VERSION = 583_281_383;

/**
 * Migrated databases without rows, by their list of migrations. Later databases in memory of this process start from
 * them.
 */
const migratedImages = new WeakMap<readonly SchemaMigration[], Buffer>();

/**
 * Returns the migrated database without rows that the build ships next to the program. Reading it takes 2 ms; running
 * all migrations takes 40 ms. Returns undefined when running from sources, and for a custom list of migrations.
 */
function shippedImage(migrations: readonly SchemaMigration[] | undefined): Buffer | undefined {
  if (migrations !== undefined) return undefined;
  try {
    return readFileSync(join(import.meta.dirname, 'schema.sqlite'));
  } catch {
    return undefined;
  }
}

async function openSqlite(
  { file, image, migrations, onFailure, openHandle }: DatabaseOptions & { kind: 'sqlite' },
  entities: Entities,
): Promise<Database> {
  const [
    { default: Sqlite },
    { MikroORM },
    dialect,
    { createCommitSync },
    { sqliteImages },
    { bindValues },
    { upgradeSqlite },
    { createKysely, ownTransactions, partsOf },
    released,
  ] = await Promise.all([
    import('better-sqlite3'),
    import('@mikro-orm/sqlite'),
    import('./sqlite/sqlite-dialect.ts'),
    import('./sqlite/commit-sync.ts'),
    import('./sqlite/images.ts'),
    import('./own-kysely.ts'),
    import('./sqlite/upgrade-sqlite.ts'),
    import('./own-kysely.ts'),
    import('./migrations/migrations.ts'),
  ]);
  const wanted = migrations ?? released.migrations;
  const isInMemory = file === ':memory:';
  const open = (content: Buffer | string) => {
    const opened = openHandle === undefined ? new Sqlite(content) : openHandle(content);
    opened.pragma('journal_mode = WAL');
    // The dialect syncs the log before a commit is acknowledged, so acknowledged changes survive a power loss.
    opened.pragma('synchronous = NORMAL');
    opened.pragma('foreign_keys = ON');
    opened.pragma('busy_timeout = 5000');
    // The size of the page cache in KiB, outside the JavaScript heap. A page that is only in the cache of the operating
    // system makes a read 2 µs slower.
    opened.pragma('cache_size = -4096');
    return opened;
  };
  const empty = isInMemory ? (migratedImages.get(wanted) ?? shippedImage(migrations)) : undefined;
  const handle = open(image ?? empty ?? file);
  try {
    upgradeSqlite(
      handle,
      wanted.map(({ sqlite }) => sqlite),
      (userVersion) => (userVersion === UNCOUNTED_VERSION ? 1 : userVersion),
    );
    if (isInMemory && !migratedImages.has(wanted)) migratedImages.set(wanted, handle.serialize());
    const sync = isInMemory ? undefined : createCommitSync(`${file}-wal`);
    const slot = dialect.slotOf(handle, { sync, onFailure });
    const parts = partsOf(dialect.sqliteDialect(slot));
    const options = { ...settings, dbName: file, driverOptions: createKysely(parts) };
    const orm = openOrm('sqlite', entities, (found) => new MikroORM({ ...options, ...found }));
    bindValues(orm, () => '?');
    ownTransactions(orm, parts);
    const images = sqliteImages(slot, isInMemory ? { open } : { file });
    const closeFile = async (): Promise<void> => {
      slot.commits.flush();
      await sync?.close();
      slot.handle.close();
    };
    return { kind: 'sqlite', orm, images, close: () => closeAll(orm, closeFile) };
  } catch (error) {
    handle.close();
    throw error;
  }
}

/**
 * Returns the number of applied migrations of a SQLite file, and of the newest one that this program has. Does not
 * change the file.
 */
export async function readSchemaVersion(file: string): Promise<{ version: number; newest: number }> {
  const [{ default: Sqlite }, { migrations }] = await Promise.all([
    import('better-sqlite3'),
    import('./migrations/migrations.ts'),
  ]);
  const handle = new Sqlite(file, { readonly: true, fileMustExist: true });
  try {
    const version = handle.pragma('user_version', { simple: true }) as number;
    return { version: version === UNCOUNTED_VERSION ? 1 : version, newest: migrations.length };
  } finally {
    handle.close();
  }
}

async function openPostgres(
  options: DatabaseOptions & { kind: 'postgres' },
  entities: Entities,
): Promise<Database> {
  const [
    { MikroORM },
    { defaultTimeouts, postgresDialect, postgresPool, sessionModeOf },
    { bindValues },
    { besideThePool, watchReadiness },
    { createKysely, ownTransactions, partsOf },
  ] = await Promise.all([
    import('@mikro-orm/postgresql'),
    import('./postgres-dialect.ts'),
    import('./own-kysely.ts'),
    import('./readiness.ts'),
    import('./own-kysely.ts'),
  ]);
  const timeouts = options.timeouts === 'none' ? undefined : (options.timeouts ?? defaultTimeouts);
  // The dialect handles silent connections itself.
  const pool = postgresPool(
    { connectionString: options.url, max: options.poolSize },
    options.onConnectionError ?? (() => {}),
    timeouts && { ...timeouts, silenceMs: undefined },
  );
  const beside = besideThePool(options.url);
  const dialect = postgresDialect(pool, sessionModeOf(options.url, timeouts), {
    onFailure: options.onFailure,
    silenceMs: timeouts?.silenceMs,
    ...{ responses: options.responses, quietMs: options.quietMs },
    ask: beside.ask,
  });
  const parts = partsOf(dialect);
  const orm = openOrm(
    'postgres',
    entities,
    (found) =>
      new MikroORM({
        ...settings,
        dbName: decodeURIComponent(new URL(options.url).pathname.slice(1)),
        driverOptions: createKysely(parts),
        schemaGenerator: { skipTables: [MIGRATIONS_TABLE, RATE_LEVELS_TABLE] },
        ...found,
      }),
  );
  bindValues(orm, (number) => `$${number}`);
  ownTransactions(orm, parts);
  return {
    kind: 'postgres',
    orm,
    readiness: watchReadiness(orm, { ask: beside.ask, pool }),
    connections: () => ({
      most: options.poolSize,
      busy: pool.totalCount - pool.idleCount - dialect.hung(),
      idle: pool.idleCount,
      hung: dialect.hung(),
      waiting: pool.waitingCount,
    }),
    close: () => closeAll(orm, () => Promise.all([dialect.close(), beside.close()])),
  };
}

/**
 * Closes the ORM and the handle. The entity manager closes its driver only if it was used, but the handle must always
 * be closed.
 */
async function closeAll(orm: { close(): Promise<void> }, closeHandle: () => unknown): Promise<void> {
  await orm.close();
  await closeHandle();
}

/** The tables that a reset does not empty, because the master key outlives the data that it seals. */
const KEPT = new Set(['master_key_checks']);

/**
 * Empties every table and restarts the sequences.
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
    // Citus refuses to alter a sequence of a distributed schema, so this sets its value.
    else for (const sequence of sequences) await em.execute(`select setval('"${sequence}"', 1, false)`);
  });
}
