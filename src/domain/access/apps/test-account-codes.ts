import { hash, timingSafeEqual } from 'node:crypto';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { invalidField } from '../../../errors.ts';
import type { KeyStore } from '../../../ports/key-store.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import {
  type StoredSeal,
  testCodeBinding,
  toSealedKey,
  toStoredSeal,
} from '../../base/sealed-keys/sealed-keys.ts';
import type { Tables } from '../../tables.ts';
import { AppEntity, type AppSettings } from './app.entity.ts';
import { readAppSettings, type TestAccountSettings } from './app-settings.ts';
import { findApp } from './find-app.ts';

// KYSELY: finds the few apps with codes by the text of their settings.

/**
 * Replaces the codes of test accounts by sealed codes, so that the settings can be stored. Calls the key store, so
 * call it outside transactions.
 *
 * @param settings as returned by `checkAppSettings`.
 */
export async function sealTestCodes(
  keyStore: KeyStore,
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
    const sealed = await keyStore.seal(Buffer.from(code, 'utf8'), testCodeBinding(appId, account.id));
    accounts.push({ ...account, sealed_otp_code: toStoredSeal(sealed) });
  }
  return { ...settings, test_accounts: accounts };
}

/**
 * Fills in the stored code of each test account that is given without one. Responses show settings without codes, and
 * clients can send such settings back unchanged.
 *
 * @param given as returned by `sealTestCodes`.
 * @throws ApiError invalid_data for an account without a code whose id is not known.
 */
export function keepTestCodes(stored: AppSettings, given: AppSettings): AppSettings {
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

/** Returns the one-time code of a test account, six digits. Calls the key store if the code is sealed. */
export async function openTestCode(
  keyStore: KeyStore,
  appId: string,
  { id, otp_code: code, sealed_otp_code: sealed }: TestAccountSettings,
): Promise<string> {
  // Only a server of an earlier version stores codes in plain text. It did so after this server had sealed all codes.
  if (code !== undefined || sealed === undefined) return code ?? '';
  return Buffer.from(await keyStore.open(toSealedKey(sealed), testCodeBinding(appId, id))).toString('utf8');
}

export async function isTestCode(
  keyStore: KeyStore,
  appId: string,
  account: TestAccountSettings,
  given: string,
): Promise<boolean> {
  const known = await openTestCode(keyStore, appId, account);
  return timingSafeEqual(hash('sha256', known, 'buffer'), hash('sha256', given, 'buffer'));
}

/** Removes sealed codes from settings, for display. */
export function withoutTestCodes(settings: AppSettings): AppSettings {
  if (!Array.isArray(settings.test_accounts)) return settings;
  const accounts = readAppSettings(settings).test_accounts.map(
    ({ otp_code: _, sealed_otp_code: __, ...account }) => account,
  );
  return { ...settings, test_accounts: accounts };
}

// The quotes are part of the pattern, so that it does not match `sealed_otp_code`.
const PLAIN_CODE = '%"otp_code"%';

/** Seals the codes that an earlier version stored in plain text. Runs at every start. */
export async function sealStoredTestCodes(
  keyStore: KeyStore,
  inTransaction: <T>(work: (em: SqlEntityManager) => Promise<T>) => Promise<T>,
): Promise<void> {
  const ids = await inTransaction(async (em) => {
    const query = em.getKysely<Tables>().selectFrom('apps').select('id');
    return (await query.where('settings', 'like', PLAIN_CODE).execute()).map(({ id }) => id);
  });
  for (const id of ids) {
    const { settings } = await inTransaction((em) => findApp(em, id));
    const sealed = await sealTestCodes(keyStore, id, settings);
    await inTransaction(async (em) => {
      const app = await em.findOneOrFail(AppEntity, { id }, lockForUpdate);
      // If another change has replaced the codes in the meantime, that change also sealed the new codes.
      if (JSON.stringify(app.settings) === JSON.stringify(settings)) app.settings = sealed;
    });
  }
}

interface SettingsWithCodes {
  readonly test_accounts: readonly { readonly id: string; readonly sealed_otp_code?: StoredSeal }[];
}

/** Returns the ids of the master keys that wrap codes of test accounts. */
export async function masterKeysOfCodes(em: SqlEntityManager): Promise<string[]> {
  const apps = await appsWithCodes(em);
  return [...new Set(apps.flatMap(({ codes }) => codes.map(({ master_key_id: id }) => id)))];
}

/**
 * Rewraps the codes of test accounts, which are part of app settings, under the current master key. An app is only
 * written if its settings have not changed since they were read.
 *
 * @returns how many codes this call rewrapped.
 */
export async function rotateTestCodes(em: SqlEntityManager, keyStore: KeyStore): Promise<number> {
  // Rewraps all codes before the first write, because the first write begins the transaction.
  const rewrapped: { id: string; text: string; changed: string; count: number }[] = [];
  for (const { id, text, settings, codes } of await appsWithCodes(em)) {
    const formerly = codes.filter((code) => code.master_key_id !== keyStore.currentMasterKeyId);
    if (formerly.length === 0) continue;
    const accounts = await Promise.all(
      settings.test_accounts.map(async (account) => {
        const { sealed_otp_code: stored } = account;
        if (stored === undefined || stored.master_key_id === keyStore.currentMasterKeyId) return account;
        const sealed = await keyStore.rewrap(toSealedKey(stored), testCodeBinding(id, account.id));
        return { ...account, sealed_otp_code: toStoredSeal(sealed) };
      }),
    );
    const changed = JSON.stringify({ ...settings, test_accounts: accounts });
    rewrapped.push({ id, text, changed, count: formerly.length });
  }
  let moved = 0;
  for (const { id, text, changed, count } of rewrapped) {
    const { numUpdatedRows } = await em
      .getKysely<Tables>()
      .updateTable('apps')
      .set({ settings: changed })
      .where('id', '=', id)
      .where('settings', '=', text)
      .executeTakeFirst();
    moved += Number(numUpdatedRows) * count;
  }
  return moved;
}

async function appsWithCodes(em: SqlEntityManager) {
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('apps')
    .select(['id', 'settings'])
    .where('settings', 'like', '%"sealed_otp_code"%')
    .orderBy('id')
    .execute();
  return rows.map(({ id, settings: text }) => {
    const settings = JSON.parse(text) as SettingsWithCodes;
    const codes = settings.test_accounts.flatMap(({ sealed_otp_code: code }) => code ?? []);
    return { id, text, settings, codes };
  });
}
