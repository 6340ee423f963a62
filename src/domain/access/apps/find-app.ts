import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Selectable } from 'kysely';
import { notFound } from '../../../errors.ts';
import type { Tables } from '../../tables.ts';
import type { AppSecretHash } from './app-secret.ts';

/** Settings of an app by name, as the operations that read them understand them. */
export type AppSettings = { [name: string]: unknown };

export interface App {
  readonly id: string;
  readonly name: string;
  readonly secretHashes: readonly AppSecretHash[];
  readonly settings: AppSettings;
  readonly createdAtMs: number;
}

const columns = ['id', 'name', 'secret_hashes', 'settings', 'created_at_ms'] as const;

/** The app, or undefined. */
export async function getApp(em: SqlEntityManager, id: string): Promise<App | undefined> {
  const row = await em
    .getKysely<Tables>()
    .selectFrom('apps')
    .select(columns)
    .where('id', '=', id)
    .executeTakeFirst();
  return row === undefined ? undefined : toApp(row);
}

/**
 * The app.
 *
 * @throws ApiError not_found
 */
export async function findApp(em: SqlEntityManager, id: string): Promise<App> {
  const app = await getApp(em, id);
  if (app === undefined) throw notFound('App');
  return app;
}

/** Every app, oldest first. */
export async function listApps(em: SqlEntityManager): Promise<App[]> {
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('apps')
    .select(columns)
    .orderBy('created_at_ms')
    .orderBy('id')
    .execute();
  return rows.map(toApp);
}

function toApp(row: Pick<Selectable<Tables['apps']>, (typeof columns)[number]>): App {
  return {
    id: row.id,
    name: row.name,
    secretHashes: JSON.parse(row.secret_hashes),
    settings: JSON.parse(row.settings),
    createdAtMs: row.created_at_ms,
  };
}
