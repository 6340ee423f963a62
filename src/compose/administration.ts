import type { SqlEntityManager } from '@mikro-orm/sql';
import { systemClock } from '../adapters/clock.ts';
import { systemEntropy } from '../adapters/entropy.ts';
import { makeIds } from '../adapters/ids.ts';
import { databaseOf, recallSandbox, rememberSandbox } from '../adapters/sandbox-folder.ts';
import type { DatabaseConfig } from '../config.ts';
import { type AppContext, createApp } from '../domain/apps/create-app.ts';
import { type App, listApps } from '../domain/apps/find-app.ts';
import { rotateAppSecret } from '../domain/apps/update-app.ts';
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
}

/** Runs the missing migrations and returns their names; with `dryRun` only returns them. */
export function migrateDatabase(config: DatabaseConfig, { dryRun }: { dryRun: boolean }): Promise<string[]> {
  return withDatabase(config, ({ orm }) => (dryRun ? pendingMigrations(orm) : migrate(orm)));
}

export function administerApps(config: DatabaseConfig): AppAdministration {
  const change = (work: (context: AppContext) => Promise<{ app: App; secret: string }>) =>
    withDatabase(config, async (database) => {
      await requireMigrated(database);
      const entropy = systemEntropy;
      const { app, secret } = await database.orm.em
        .fork()
        .transactional((em) =>
          work({ em: em as SqlEntityManager, entropy, ids: makeIds(entropy), nowMs: systemClock.now() }),
        );
      return { ...view(app), secret };
    });
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
  };
}

async function withDatabase<T>(config: DatabaseConfig, work: (database: Database) => Promise<T>): Promise<T> {
  if (config.kind === 'folder' && recallSandbox(config.folder) === undefined) {
    throw new StartError(`no sandbox has kept its data in \`${config.folder}\``);
  }
  const database = await openDatabase(
    config.kind === 'folder'
      ? { kind: 'sqlite', file: databaseOf(config.folder) }
      : { kind: 'postgres', url: config.url, poolSize: 1 },
  );
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

async function requireMigrated(database: Database): Promise<void> {
  if (database.kind === 'sqlite') return;
  const missing = await pendingMigrations(database.orm);
  if (missing.length > 0)
    throw new StartError('the database lacks migrations of this version; run `custos migrate` first');
}

/** The sandbox tells its app's secret at every start; it must be the one that is in force. */
function rememberSecret(folder: string, { id, secret }: AppWithSecret): void {
  const memory = recallSandbox(folder);
  if (memory?.appId === id) rememberSandbox(folder, { ...memory, appSecret: secret });
}

function view(app: App): AdministeredApp {
  return { id: app.id, name: app.name, created_at: new Date(app.createdAtMs).toISOString() };
}
