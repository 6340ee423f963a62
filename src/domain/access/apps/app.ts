import { hash, timingSafeEqual } from 'node:crypto';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { ApiError, invalidField, notFound } from '../../../errors.ts';
import type { KeyVault } from '../../../ports/key-vault.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import type { AppDirectory } from '../../../ports/requests.ts';
import type { Clock } from '../../../ports/runtime.ts';
import { isUniqueViolation } from '../../../storage/database-errors.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import type { Orm } from '../../../storage/open-database.ts';
import { testCodeBinding, toSealedKey, toStoredSeal } from '../../base/sealed-keys/sealed-keys.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import { type App, AppEntity, type AppSettings } from './app.entity.ts';
import { readAppSettings, type TestAccountSettings } from './app-settings.ts';
import {
  type AppSecretHash,
  drawAppSecret,
  findApp,
  getApp,
  hashAppSecret,
  secretsInForce,
} from './find-app.ts';

// HOT: every request with a user's token looks up its app; the entity manager takes twelve times as long on SQLite.
const selectApp = prepareQuery<{ id: string }, { id: string; secret_hashes: string; settings: string }>(
  (database, { id }) =>
    database.selectFrom('apps').select(['id', 'secret_hashes', 'settings']).where('id', '=', id),
);

/** A directory that is notified of changes. */
export interface StoredAppDirectory extends AppDirectory {
  /** Call after this process has changed an app or one of its secrets. */
  noteChange(): void;
}

/** A directory of the stored apps. It does not cache; callers may. */
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

/**
 * Replaces the codes of test accounts by sealed ones, so that the settings can be stored. Asks the vault: call it outside
 * of transactions.
 *
 * Shape: `settings` as returned by `checkAppSettings`.
 */
export async function sealTestCodes(
  vault: KeyVault,
  appId: string,
  settings: AppSettings,
): Promise<AppSettings> {
  if (!Array.isArray(settings.test_accounts)) return settings;
  const accounts: Omit<TestAccountSettings, 'otp_code'>[] = [];
  for (const { otp_code: code, ...account } of readAppSettings(settings).test_accounts) {
    if (code === undefined) {
      accounts.push(account);
      continue;
    }
    const sealed = await vault.seal(Buffer.from(code, 'utf8'), testCodeBinding(appId, account.id));
    accounts.push({ ...account, sealed_otp_code: toStoredSeal(sealed) });
  }
  return { ...settings, test_accounts: accounts };
}

/**
 * Test accounts without a code keep the one that is stored: settings are shown without codes, and can be sent back as
 * they were shown.
 *
 * Shape: `given` as returned by `sealTestCodes`.
 *
 * @throws ApiError invalid_data for an account without a code whose id is not known.
 */
function keepTestCodes(stored: AppSettings, given: AppSettings): AppSettings {
  if (!Array.isArray(given.test_accounts)) return given;
  const known = new Map(readAppSettings(stored).test_accounts.map((account) => [account.id, account]));
  const accounts = readAppSettings(given).test_accounts.map((account, index) => {
    if (account.sealed_otp_code !== undefined || account.otp_code !== undefined) return account;
    const before = known.get(account.id);
    if (before !== undefined) return { ...before, ...account };
    throw invalidField(
      `/settings/test_accounts/${index}/otp_code`,
      'expected six digits: the app has no test account with this id',
    );
  });
  return { ...given, test_accounts: accounts };
}

/** The one-time code of a test account, six digits. */
export async function openTestCode(
  vault: KeyVault,
  appId: string,
  { id, otp_code: code, sealed_otp_code: sealed }: TestAccountSettings,
): Promise<string> {
  // A server of an earlier version has stored it since this one was started.
  if (code !== undefined || sealed === undefined) return code ?? '';
  return Buffer.from(await vault.open(toSealedKey(sealed), testCodeBinding(appId, id))).toString('utf8');
}

/** Whether this is the one-time code of a test account. */
export async function isTestCode(
  vault: KeyVault,
  appId: string,
  account: TestAccountSettings,
  given: string,
): Promise<boolean> {
  const known = await openTestCode(vault, appId, account);
  return timingSafeEqual(hash('sha256', known, 'buffer'), hash('sha256', given, 'buffer'));
}

/** Settings for display: without sealed codes. */
export function withoutTestCodes(settings: AppSettings): AppSettings {
  if (!Array.isArray(settings.test_accounts)) return settings;
  const accounts = readAppSettings(settings).test_accounts.map(
    ({ otp_code: _, sealed_otp_code: __, ...account }) => account,
  );
  return { ...settings, test_accounts: accounts };
}

// The name with its quotes: `sealed_otp_code` does not contain it.
const PLAIN_CODE = '%"otp_code"%';

/**
 * Seals the codes that an earlier version has stored in plain text. Runs at every start.
 *
 * HOT: finds the few apps by the text of their settings, instead of reading all; no bench case covers it.
 */
export async function sealStoredTestCodes(
  vault: KeyVault,
  inTransaction: <T>(work: (em: SqlEntityManager) => Promise<T>) => Promise<T>,
): Promise<void> {
  const ids = await inTransaction(async (em) => {
    const query = em.getKysely<Tables>().selectFrom('apps').select('id');
    return (await query.where('settings', 'like', PLAIN_CODE).execute()).map(({ id }) => id);
  });
  for (const id of ids) {
    const { settings } = await inTransaction((em) => findApp(em, id));
    const sealed = await sealTestCodes(vault, id, settings);
    await inTransaction(async (em) => {
      const app = await em.findOneOrFail(AppEntity, { id }, lockForUpdate);
      // Otherwise they were changed meanwhile, which seals the new codes.
      if (JSON.stringify(app.settings) === JSON.stringify(settings)) app.settings = sealed;
    });
  }
}

/** The context of app verbs. They are called by an operator, so there is no authenticated app. */
export type AppContext = Pick<OperationContext, 'em' | 'entropy' | 'ids' | 'nowMs'>;

interface NewApp {
  /** Default: generated, like the secret. */
  id?: string | undefined;
  name?: string | undefined;
  secret?: string | undefined;
  settings?: AppSettings | undefined;
}

/**
 * Creates an app. Only this result ever contains the secret's text.
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
    // Created by another process in the meantime.
    throw isUniqueViolation(error) ? taken : error;
  }
  return { app, secret };
}

interface AppChange {
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
