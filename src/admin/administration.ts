import { createHttpJwks } from '../adapters/jwks-http.ts';
import { makeIds, systemClock, systemEntropy } from '../adapters/runtime.ts';
import { databaseOf, readSandboxState, writeSandboxState } from '../adapters/sandbox-folder.ts';
import { type DatabaseConfig, readKeysConfig } from '../config/config.ts';
import { StartError } from '../config/start-error.ts';
import type { App, AppSettings } from '../domain/access/apps/app.entity.ts';
import { type AppContext, createApp, rotateAppSecret, updateApp } from '../domain/access/apps/app.ts';
import { checkAppSettings } from '../domain/access/apps/app-settings.ts';
import { findApp, listApps } from '../domain/access/apps/find-app.ts';
import { sealTestCodes, withoutTestCodes } from '../domain/access/apps/test-account-codes.ts';
import { type OperatorCaller, recordChange } from '../domain/access/operators/operator.ts';
import { entities } from '../domain/tables.ts';
import { rotateSigningKey } from '../domain/wallets/tokens/access-tokens.ts';
import { checkJwtAuthReachable } from '../domain/wallets/tokens/verify-custom-jwt.ts';
import { transferAccount as transfer } from '../domain/wallets/users/linked-accounts.ts';
import { restoreWallet as restore } from '../domain/wallets/wallets/update-wallet.ts';
import { isUnavailable } from '../errors.ts';
import { sandboxKeyStore } from '../keys/sandbox-keys.ts';
import type { KeyStore } from '../ports/key-store.ts';
import type { UnitContext } from '../ports/operation-context.ts';
import type { Log } from '../ports/runtime.ts';
import { inUnitOf, unitsOf } from '../server/unit-of-work.ts';
import { accessFault } from '../storage/database-errors.ts';
import { migrate, pendingMigrations } from '../storage/migrate.ts';
import { type Database, openDatabase } from '../storage/open-database.ts';
import type { AskDatabase } from '../storage/schema/identify-database.ts';
import { withKeyStore } from './open-key-store.ts';

/** An app, as commands print it. */
interface AdministeredApp {
  readonly id: string;
  readonly name: string;
  /** An ISO 8601 timestamp. */
  readonly created_at: string;
}

interface AppWithSecret extends AdministeredApp {
  readonly secret: string;
}

export const newAppId = (): string => makeIds(systemEntropy).cuid();

/** The commands for apps. Each call opens and closes the database. */
export interface AppAdministration {
  /** @param id default: a new one. */
  createApp(name: string, id?: string): Promise<AppWithSecret>;
  listApps(): Promise<AdministeredApp[]>;
  /** Previous secrets remain valid for `overlapMs`. */
  rotateSecret(appId: string, overlapMs: number): Promise<AppWithSecret>;
  /**
   * Replaces the given settings and keeps the others. Null removes a setting.
   *
   * @throws ApiError not_found; invalid_data that names the setting.
   */
  configure(
    appId: string,
    settings: AppSettings,
  ): Promise<AdministeredApp & { readonly settings: AppSettings }>;
  /** Creates a new signing key for the app's tokens. Previous keys stay in the JWKS. */
  rotateSigningKey(appId: string): Promise<AdministeredApp>;
}

/**
 * Runs the pending migrations and returns their names. With `dryRun`, only returns the names.
 *
 * @throws StartError when a newer version has removed what this version uses, or the schema differs from its
 * migrations.
 */
export function migrateDatabase(config: DatabaseConfig, { dryRun }: { dryRun: boolean }): Promise<string[]> {
  const work = async (database: Database): Promise<string[]> => {
    await requireSchema(database);
    const names = await (dryRun ? pendingMigrations(database.orm) : migrate(database.orm));
    if (!dryRun || names.length === 0) await requireMigrated(database);
    if (!dryRun && names.length > 0) await recordMigration(database, names);
    return names;
  };
  return withDatabase(config, work, 'none');
}

/**
 * Requires a schema in which tables can be created.
 *
 * @throws StartError when no schema of the `search_path` exists.
 */
async function requireSchema({ orm, kind }: Database): Promise<void> {
  if (kind === 'sqlite') return;
  const [row] = await orm.em.fork().execute<{ name: string | null }[]>('select current_schema() as name');
  if (row?.name === null)
    throw new StartError('no schema of the `search_path` exists; create it first with `create schema`');
}

function recordMigration(database: Database, names: readonly string[]): Promise<void> {
  return inUnitOf(unitsOf(database))((em, notes) => {
    return recordChange(
      { em, notes, nowMs: systemClock.now(), by: commandLine },
      { appId: null, action: 'migrate', targets: { newest: names.at(-1)! } },
    );
  });
}

/** The caller in the audit records of commands. */
export const commandLine = { origin: 'command_line' } as const satisfies OperatorCaller;

export function administerApps(config: DatabaseConfig): AppAdministration {
  const change = async (
    action: string,
    work: (context: CommandContext) => Promise<{ app: App; secret: string }>,
  ) => {
    const { app, secret } = await inTransaction(config, async (context) => {
      const changed = await work(context);
      await record(context, changed.app, action);
      return changed;
    });
    return { ...view(app), secret };
  };
  return {
    createApp: (name, id) => change('createApp', (context) => createApp(context, { name, id })),
    listApps: () =>
      withDatabase(config, async (database) => {
        await requireMigrated(database);
        return (await listApps(database.orm.em.fork())).map(view);
      }),
    async rotateSecret(appId, overlapMs) {
      const rotated = await change('rotateAppSecret', (context) =>
        rotateAppSecret(context, appId, { overlapMs }),
      );
      if (config.kind === 'folder') storeSecret(config.folder, rotated);
      return rotated;
    },
    async configure(appId, given) {
      const checked = checkAppSettings(given, { ids: makeIds(systemEntropy), nowMs: systemClock.now() });
      await checkJwtAuthReachable({ jwks: createHttpJwks(systemClock) }, checked);
      // Only sealing the test codes needs the master key.
      const hasCodes = Array.isArray(checked.test_accounts);
      const settings = hasCodes
        ? await withKeyStoreOf(config, (keyStore) => sealTestCodes(keyStore, appId, checked))
        : checked;
      const app = await inTransaction(config, async (context) => {
        const updated = await updateApp(context, appId, { settings });
        // Only the names of settings are recorded, because their values contain keys and codes.
        await record(context, updated, 'configureApp', { settings: Object.keys(settings).join(', ') });
        return updated;
      });
      return { ...view(app), settings: withoutTestCodes(app.settings) };
    },
    rotateSigningKey: (appId) =>
      withKeyStoreOf(config, (keyStore) =>
        inTransaction(config, async (context) => {
          const app = await findApp(context.em, appId);
          await rotateSigningKey({ ...context, keyStore }, appId);
          await record(context, app, 'rotateSigningKey');
          return view(app);
        }),
      ),
  };
}

function record(
  { em, notes, nowMs }: CommandContext,
  { id: appId }: App,
  action: string,
  targets: Record<string, string> = {},
): Promise<void> {
  return recordChange({ em, notes, nowMs, by: commandLine }, { appId, action, targets });
}

/** The context of a command that changes something. */
type CommandContext = AppContext & UnitContext;

export function inTransaction<T>(
  config: DatabaseConfig,
  work: (context: CommandContext) => Promise<T>,
): Promise<T> {
  return withDatabase(config, async (database) => {
    await requireMigrated(database);
    const entropy = systemEntropy;
    return inUnitOf(unitsOf(database))((em, notes) =>
      work({ em, notes, entropy, ids: makeIds(entropy), nowMs: systemClock.now() }),
    );
  });
}

/** Runs `work` with the key store that seals the keys in this database. */
function withKeyStoreOf<T>(config: DatabaseConfig, work: (keyStore: KeyStore) => Promise<T>): Promise<T> {
  if (config.kind === 'postgres') return withKeyStore(readKeysConfig().keyStore, work);
  const state = readSandboxState(config.folder);
  if (state === undefined)
    throw new StartError(`expected the data folder of a sandbox, got \`${config.folder}\``);
  return work(sandboxKeyStore(state.masterKeyHex));
}

/** Opens the database, runs `work` and closes the database. */
export async function withDatabase<T>(
  config: DatabaseConfig,
  work: (database: Database) => Promise<T>,
  timeouts: 'none' | undefined = undefined,
): Promise<T> {
  if (config.kind === 'folder' && readSandboxState(config.folder) === undefined) {
    throw new StartError(`expected the data folder of a sandbox, got \`${config.folder}\``);
  }
  const database = await openDatabase(
    entities,
    config.kind === 'folder'
      ? { kind: 'sqlite', file: databaseOf(config.folder) }
      : { kind: 'postgres', url: config.url, poolSize: 1, ...(timeouts && { timeouts }) },
  );
  try {
    return await work(database);
  } catch (error) {
    throw config.kind === 'folder' ? error : asStartError(error, config.cell);
  } finally {
    await database.close();
  }
}

/**
 * Returns an error that means that a database cannot be used as a sentence which names the cell. Returns other errors as
 * they are.
 */
export function asStartError(error: unknown, cell: string | undefined): unknown {
  const reason = accessFault(error);
  if (reason === undefined) return error;
  const place = cell === undefined ? 'the database' : `the database of the cell \`${cell}\``;
  return new StartError(`${place} ${reason}`, { cause: error });
}

/** CHOICE: how long a starting server waits for a recovery or promotion of the database to end. */
const RECOVERY_MS = 60_000;

/** Thrown when the database is read-only, for example during a recovery or before a standby is promoted. */
export class ReadOnlyDatabaseError extends StartError {
  constructor(message: string) {
    super(message);
    this.name = 'ReadOnlyDatabaseError';
  }
}

/**
 * Waits while the database is read-only, for example during a recovery to a point in time.
 *
 * @throws ReadOnlyDatabaseError if the database is still read-only after `limitMs`.
 */
export async function waitUntilWritable(
  { orm }: Pick<Database, 'orm'>,
  log: Pick<Log, 'warn'>,
  { limitMs = RECOVERY_MS, everyMs = 1_000 }: { readonly limitMs?: number; readonly everyMs?: number } = {},
): Promise<void> {
  const deadlineMs = performance.now() + limitMs;
  for (let hasWarned = false; ; hasWarned = true) {
    const [state] = await orm.em
      .fork()
      .execute<{ is_recovering: boolean; is_read_only: boolean }[]>(
        `select pg_is_in_recovery() as is_recovering, current_setting('transaction_read_only') = 'on' as is_read_only`,
      );
    if (state?.is_recovering !== true && state?.is_read_only !== true) return;
    const text = state.is_recovering ? 'the database is in recovery' : 'the database is read-only';
    if (!hasWarned && limitMs > 0)
      log.warn({ limit_ms: limitMs }, `${text}; waiting until it accepts changes`);
    if (performance.now() >= deadlineMs) {
      throw new ReadOnlyDatabaseError(
        `${text}${limitMs > 0 ? ` after ${limitMs / 1000} s` : ''}: start the server when \`select pg_is_in_recovery()\` returns false, or name the primary in the database URL`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}

/**
 * @throws StartError when PostgreSQL cannot be reached, its schema is not that of this version, or its Citus cluster
 * cannot be used.
 */
export async function requireMigrated(database: Database): Promise<void> {
  if (database.kind === 'sqlite') return;
  const fault = await schemaFaultOf(database);
  if (fault !== undefined) throw new StartError(fault);
}

async function schemaFaultOf({ orm }: Database): Promise<string | undefined> {
  const [{ findSchemaFault }, { findClusterFault }] = await Promise.all([
    import('../storage/schema/identify-database.ts'),
    import('../storage/schema/citus.ts'),
  ]);
  const ask: AskDatabase = (sql) => orm.em.fork().execute(sql);
  try {
    const cluster = await findClusterFault(ask);
    return cluster === undefined ? await findSchemaFault(orm, ask) : `${cluster.text}; ${cluster.advice}`;
  } catch (cause) {
    if (!isUnavailable(cause)) throw cause;
    throw new StartError(`the database cannot be reached: ${(cause as Error).message}`, { cause });
  }
}

/** Updates the stored app secret, if it belongs to the app whose secret the sandbox prints at every start. */
function storeSecret(folder: string, { id, secret }: AppWithSecret): void {
  const state = readSandboxState(folder);
  if (state?.appId === id) writeSandboxState(folder, { ...state, appSecret: secret });
}

function view(app: App): AdministeredApp {
  return { id: app.id, name: app.name, created_at: new Date(app.createdAtMs).toISOString() };
}

/** A user, as commands print it. */
interface AdministeredUser {
  readonly id: string;
  readonly app_id: string;
  /** The types of the linked accounts, such as `email`. */
  readonly linked_accounts: readonly string[];
}

/**
 * Moves the only account of a user to another user.
 *
 * @throws ApiError not_found, invalid_data, invalid_state
 */
export function transferAccount(
  config: DatabaseConfig,
  users: { readonly fromUserId: string; readonly toUserId: string },
): Promise<AdministeredUser> {
  return withDatabase(config, async (database) => {
    await requireMigrated(database);
    const context = { ids: makeIds(systemEntropy), nowMs: systemClock.now(), by: commandLine };
    const inUnit = inUnitOf(unitsOf(database));
    const { row, linkedAccounts } = await inUnit((em, notes) => transfer({ ...context, em, notes }, users));
    return { id: row.id, app_id: row.app_id, linked_accounts: linkedAccounts.map(({ type }) => type) };
  });
}

/** A wallet, as commands print it. */
export interface AdministeredWallet {
  readonly id: string;
  readonly app_id: string;
  readonly address: string;
  readonly chain_type: string;
}

/**
 * Restores an archived wallet.
 *
 * @throws ApiError not_found, invalid_state
 */
export function restoreWallet(config: DatabaseConfig, walletId: string): Promise<AdministeredWallet> {
  return withDatabase(config, async (database) => {
    await requireMigrated(database);
    const context = { ids: makeIds(systemEntropy), nowMs: systemClock.now(), by: commandLine };
    const inUnit = inUnitOf(unitsOf(database));
    const { id, app_id, address, chain_type } = await inUnit((em, notes) =>
      restore({ ...context, em, notes }, walletId),
    );
    return { id, app_id, address, chain_type };
  });
}
