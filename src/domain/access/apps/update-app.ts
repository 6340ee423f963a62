import type { Tables } from '../../tables.ts';
import { drawAppSecret, hashAppSecret, secretsInForce } from './app-secret.ts';
import type { AppContext } from './create-app.ts';
import { type App, type AppSettings, findApp } from './find-app.ts';

export interface AppChange {
  name?: string | undefined;
  /** Settings to replace, by name; one set to null is removed, the others stay. */
  settings?: AppSettings | undefined;
}

/**
 * Renames an app or changes its settings.
 *
 * @throws ApiError not_found
 */
export async function updateApp(context: AppContext, id: string, change: AppChange): Promise<App> {
  const app = await findApp(context.em, id);
  const merged = Object.entries({ ...app.settings, ...change.settings }).filter(
    ([, value]) => value !== null,
  );
  const updated = { ...app, name: change.name ?? app.name, settings: Object.fromEntries(merged) };
  await store(context, updated);
  return updated;
}

/**
 * Gives an app another secret. The secrets before it are accepted for `overlapMs` more and no longer than
 * they would have been.
 *
 * @throws ApiError not_found
 */
export async function rotateAppSecret(
  context: AppContext,
  id: string,
  { overlapMs, secret = drawAppSecret(context.entropy) }: { overlapMs: number; secret?: string | undefined },
): Promise<{ app: App; secret: string }> {
  const app = await findApp(context.em, id);
  const endMs = context.nowMs + overlapMs;
  const earlier = app.secretHashes.map((known) => ({
    ...known,
    expiresAtMs: Math.min(known.expiresAtMs ?? endMs, endMs),
  }));
  const secretHashes = [hashAppSecret(secret, context.nowMs), ...secretsInForce(earlier, context.nowMs)];
  const rotated = { ...app, secretHashes };
  await store(context, rotated);
  return { app: rotated, secret };
}

async function store(context: AppContext, app: App): Promise<void> {
  await context.em
    .getKysely<Tables>()
    .updateTable('apps')
    .set({
      name: app.name,
      secret_hashes: JSON.stringify(app.secretHashes),
      settings: JSON.stringify(app.settings),
    })
    .where('id', '=', app.id)
    .execute();
}
