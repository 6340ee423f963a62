import { ApiError, notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import type { AppDirectory } from '../../../ports/requests.ts';
import type { Clock } from '../../../ports/runtime.ts';
import { isUniqueViolation } from '../../../storage/database-errors.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import type { Orm } from '../../../storage/open-database.ts';
import { prepareQuery } from '../../prepared-query.ts';
import { type App, AppEntity, type AppSettings } from './app.entity.ts';
import { readAppSettings } from './app-settings.ts';
import { type AppSecretHash, drawAppSecret, getApp, hashAppSecret, secretsInForce } from './find-app.ts';
import { keepTestCodes } from './test-account-codes.ts';

// HOT: runs for every request with a user token. The entity manager would take several times the CPU of this read
// (bench `sqlite`, `postgres`).

const selectApp = prepareQuery<{ id: string }, { id: string; secret_hashes: string; settings: string }>(
  (database, { id }) =>
    database.selectFrom('apps').select(['id', 'secret_hashes', 'settings']).where('id', '=', id),
);

/** A directory of apps. It must be told about changes, because its callers cache apps. */
export interface StoredAppDirectory extends AppDirectory {
  /** Call after this process has changed an app or one of its secrets. */
  noteChange(): void;
}

/** Returns a directory that reads the stored apps. It does not cache, but callers may. */
export function createAppDirectory(orm: Orm, clock: Clock): StoredAppDirectory {
  let generation = 0;
  return {
    async find(appId) {
      const {
        rows: [app],
      } = await selectApp(orm.em, { id: appId });
      if (app === undefined) return undefined;
      const secretHashes = secretsInForce(JSON.parse(app.secret_hashes) as AppSecretHash[], clock.now()).map(
        ({ hash }) => Buffer.from(hash, 'hex'),
      );
      const settings = readAppSettings(JSON.parse(app.settings) as AppSettings);
      return {
        id: app.id,
        secretHashes,
        allowedOrigins: settings.allowed_origins,
        admitsPublicClients: settings.device_flow.public_clients,
      };
    },
    generation: () => generation,
    noteChange: () => {
      generation += 1;
    },
  };
}

/** The context of app verbs. An operator calls them, so there is no authenticated app. */
export type AppContext = Pick<OperationContext, 'em' | 'entropy' | 'ids' | 'nowMs'>;

interface NewApp {
  /** The default is a new id. */
  id?: string | undefined;
  name?: string | undefined;
  secret?: string | undefined;
  settings?: AppSettings | undefined;
}

/**
 * Creates an app. Only this result contains the secret itself, which is not stored.
 *
 * @throws ApiError resource_already_exists when there is an app with this id.
 */
export async function createApp(context: AppContext, input: NewApp): Promise<{ app: App; secret: string }> {
  const secret = input.secret ?? drawAppSecret(context.entropy);
  const id = input.id ?? context.ids.cuid();
  const taken = new ApiError('resource_already_exists', `an app with the id \`${id}\` already exists`);
  if ((await getApp(context.em, id)) !== undefined) throw taken;
  const app = context.em.create(AppEntity, {
    id,
    name: input.name ?? 'Unnamed app',
    secretHashes: [hashAppSecret(secret, context.nowMs)],
    settings: keepTestCodes({}, input.settings ?? {}),
    createdAtMs: context.nowMs,
  });
  try {
    await context.em.flush();
  } catch (error) {
    // Another process created an app with this id after the check above.
    throw isUniqueViolation(error) ? taken : error;
  }
  return { app, secret };
}

interface AppChange {
  name?: string | undefined;
  /** Settings to replace, by name. Null removes a setting; settings that are not named stay. */
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
 * Creates a new secret for an app. Earlier secrets stay valid for `overlapMs`, or until their own expiry if it is
 * sooner.
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
