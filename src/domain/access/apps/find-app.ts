import type { SqlEntityManager } from '@mikro-orm/sql';
import { notFound } from '../../../errors.ts';
import { type App, AppEntity } from './app.entity.ts';

/** The app, or undefined. */
export async function getApp(em: SqlEntityManager, id: string): Promise<App | undefined> {
  return (await em.findOne(AppEntity, { id })) ?? undefined;
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
export function listApps(em: SqlEntityManager): Promise<App[]> {
  return em.find(AppEntity, {}, { orderBy: { createdAtMs: 'asc', id: 'asc' } });
}
