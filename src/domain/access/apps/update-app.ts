import { notFound } from '../../../errors.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { type App, AppEntity, type AppSettings } from './app.entity.ts';
import { drawAppSecret, hashAppSecret, secretsInForce } from './app-secret.ts';
import type { AppContext } from './create-app.ts';
import { keepTestCodes } from './test-accounts.ts';

export interface AppChange {
  name?: string | undefined;
  /** Settings to replace, by name; one set to null is removed, the others stay. */
  settings?: AppSettings | undefined;
}

/**
 * Renames an app or changes its settings.
 *
 * @throws ApiError not_found; what `keepTestCodes` throws.
 */
export async function updateApp(context: AppContext, id: string, change: AppChange): Promise<App> {
  const app = await findAppForUpdate(context, id);
  const given = keepTestCodes(app.settings, change.settings ?? {});
  const merged = Object.entries({ ...app.settings, ...given }).filter(([, value]) => value !== null);
  app.name = change.name ?? app.name;
  app.settings = Object.fromEntries(merged);
  await context.em.flush();
  return app;
}

/**
 * Rotates an app's secret. Earlier secrets stay valid for `overlapMs`, but never longer than before.
 *
 * @throws ApiError not_found
 */
export async function rotateAppSecret(
  context: AppContext,
  id: string,
  { overlapMs, secret = drawAppSecret(context.entropy) }: { overlapMs: number; secret?: string | undefined },
): Promise<{ app: App; secret: string }> {
  const app = await findAppForUpdate(context, id);
  const endMs = context.nowMs + overlapMs;
  const earlier = app.secretHashes.map((known) => ({
    ...known,
    expiresAtMs: Math.min(known.expiresAtMs ?? endMs, endMs),
  }));
  app.secretHashes = [hashAppSecret(secret, context.nowMs), ...secretsInForce(earlier, context.nowMs)];
  await context.em.flush();
  return { app, secret };
}

async function findAppForUpdate({ em }: AppContext, id: string): Promise<App> {
  const app = await em.findOne(AppEntity, { id }, lockForUpdate);
  if (app === null) throw notFound('App');
  return app;
}
