import type { SqlEntityManager } from '@mikro-orm/sql';
import { systemClock } from '../adapters/clock.ts';
import { systemEntropy } from '../adapters/entropy.ts';
import { makeIds } from '../adapters/ids.ts';
import { createHttpJwks } from '../adapters/jwks-http.ts';
import { productionVault } from '../adapters/production-vault.ts';
import { databaseOf, recallSandbox, rememberSandbox } from '../adapters/sandbox-folder.ts';
import { sandboxVault } from '../adapters/sandbox-vault.ts';
import { type DatabaseConfig, readKeysConfig } from '../config.ts';
import { checkAppSettings } from '../domain/access/apps/app-settings.ts';
import { type AppContext, createApp } from '../domain/access/apps/create-app.ts';
import { type App, type AppSettings, findApp, listApps } from '../domain/access/apps/find-app.ts';
import { rotateAppSecret, updateApp } from '../domain/access/apps/update-app.ts';
import { entities } from '../domain/tables.ts';
import { rotateSigningKey } from '../domain/wallets/tokens/signing-keys.ts';
import { checkJwtAuthReachable } from '../domain/wallets/tokens/verify-customer-token.ts';
import { isUnavailable } from '../errors.ts';
import type { KeyVault } from '../ports/key-vault.ts';
import { StartError } from '../start-error.ts';
import { migrate, pendingMigrations } from '../storage/migrate.ts';
import { type Database, openDatabase } from '../storage/open-database.ts';

/** An app as the command line shows it. */
export interface AdministeredApp {
  readonly id: string;
  readonly name: string;
  /** ISO 8601. */
  readonly created_at: string;
}

export interface AppWithSecret extends AdministeredApp {
  readonly secret: string;
}

/** What an operator does with apps. Each call opens the database and closes it again. */
export interface AppAdministration {
  createApp(name: string): Promise<AppWithSecret>;
  listApps(): Promise<AdministeredApp[]>;
  /** Old secrets are accepted for `overlapMs` more. */
  rotateSecret(appId: string, overlapMs: number): Promise<AppWithSecret>;
  /** Replaces settings by name; null removes one. Throws ApiError invalid_data that names the setting. */
  configure(
    appId: string,
    settings: AppSettings,
  ): Promise<AdministeredApp & { readonly settings: AppSettings }>;
  /** Makes a new key that signs the app's tokens; earlier ones stay listed. */
  rotateSigningKey(appId: string): Promise<AdministeredApp>;
}

/**
 * Runs the missing migrations and returns their names; with `dryRun` only returns them.
 *
 * @throws StartError when a newer version has migrated the database, or it is not as its migrations leave it.
 */
export function migrateDatabase(config: DatabaseConfig, { dryRun }: { dryRun: boolean }): Promise<string[]> {
  const work = async (database: Database): Promise<string[]> => {
    const names = await (dryRun ? pendingMigrations(database.orm) : migrate(database.orm));
    if (!dryRun || names.length === 0) await requireMigrated(database);
    return names;
  };
  return withDatabase(config, work, 'none');
}

export function administerApps(config: DatabaseConfig): AppAdministration {
  const change = async (work: (context: AppContext) => Promise<{ app: App; secret: string }>) => {
    const { app, secret } = await inTransaction(config, work);
    return { ...view(app), secret };
  };
  return {
    createApp: (name) => change((context) => createApp(context, { name })),
    listApps: () =>
      withDatabase(config, async (database) => {
        await requireMigrated(database);
        return (await listApps(database.orm.em.fork())).map(view);
      }),
    async rotateSecret(appId, overlapMs) {
      const rotated = await change((context) => rotateAppSecret(context, appId, { overlapMs }));
      if (config.kind === 'folder') rememberSecret(config.folder, rotated);
      return rotated;
    },
    async configure(appId, given) {
      const settings = checkAppSettings(given);
      await checkJwtAuthReachable({ jwks: createHttpJwks(systemClock) }, settings);
      const app = await inTransaction(config, (context) => updateApp(context, appId, { settings }));
      return { ...view(app), settings: app.settings };
    },
    rotateSigningKey: (appId) =>
      inTransaction(config, async (context) => {
        const app = await findApp(context.em, appId);
        await rotateSigningKey({ ...context, vault: vaultOf(config) }, appId);
        return view(app);
      }),
  };
}

function inTransaction<T>(config: DatabaseConfig, work: (context: AppContext) => Promise<T>): Promise<T> {
  return withDatabase(config, async (database) => {
    await requireMigrated(database);
    const entropy = systemEntropy;
    return database.orm.em
      .fork()
      .transactional((em) =>
        work({ em: em as SqlEntityManager, entropy, ids: makeIds(entropy), nowMs: systemClock.now() }),
      );
  });
}

/** The vault that the server of this database seals with. */
function vaultOf(config: DatabaseConfig): KeyVault {
  if (config.kind === 'postgres') return productionVault(readKeysConfig().masterKeys, systemEntropy);
  const memory = recallSandbox(config.folder);
  if (memory === undefined) throw new StartError(`no sandbox has kept its data in \`${config.folder}\``);
  return sandboxVault(memory.masterKeyHex);
}

/** Opens the database for as long as `work` takes. */
export async function withDatabase<T>(
  config: DatabaseConfig,
  work: (database: Database) => Promise<T>,
  timeouts: 'none' | undefined = undefined,
): Promise<T> {
  if (config.kind === 'folder' && recallSandbox(config.folder) === undefined) {
    throw new StartError(`no sandbox has kept its data in \`${config.folder}\``);
  }
  const database = await openDatabase(
    entities,
    config.kind === 'folder'
      ? { kind: 'sqlite', file: databaseOf(config.folder) }
      : { kind: 'postgres', url: config.url, poolSize: 1, ...(timeouts && { timeouts }) },
  );
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

/**
 * @throws StartError when PostgreSQL cannot be reached, or is not at this version's schema.
 */
export async function requireMigrated(database: Database): Promise<void> {
  if (database.kind === 'sqlite') return;
  const fault = await schemaFaultOf(database);
  if (fault !== undefined) throw new StartError(fault);
}

async function schemaFaultOf({ orm }: Database): Promise<string | undefined> {
  const { findSchemaFault } = await import('../storage/schema-fault.ts');
  try {
    return await findSchemaFault(orm, (sql) => orm.em.fork().execute(sql));
  } catch (cause) {
    if (!isUnavailable(cause)) throw cause;
    throw new StartError(`the database cannot be reached: ${(cause as Error).message}`, { cause });
  }
}

/** The sandbox tells its app's secret at every start; it must be the one that is in force. */
function rememberSecret(folder: string, { id, secret }: AppWithSecret): void {
  const memory = recallSandbox(folder);
  if (memory?.appId === id) rememberSandbox(folder, { ...memory, appSecret: secret });
}

function view(app: App): AdministeredApp {
  return { id: app.id, name: app.name, created_at: new Date(app.createdAtMs).toISOString() };
}
