import type { SqlEntityManager } from '@mikro-orm/sql';
import type { KeyVault, SealedKey } from '../../../ports/key-vault.ts';
import type { Tables } from '../../tables.ts';
import { testCodeBinding } from './seal-bindings.ts';

// HOT: finds the few apps with codes by the text of their settings, instead of reading all; no bench case covers it.

/** A sealed secret as a member of JSON; bytes in base64. */
export interface StoredSeal {
  readonly sealed_secret: string;
  readonly wrapped_data_key: string;
  readonly master_key_id: string;
}

/** A sealed secret in the form for JSON. */
export function toStoredSeal({ sealedSecret, wrappedDataKey, masterKeyId }: SealedKey): StoredSeal {
  return {
    sealed_secret: Buffer.from(sealedSecret).toString('base64'),
    wrapped_data_key: Buffer.from(wrappedDataKey).toString('base64'),
    master_key_id: masterKeyId,
  };
}

/** The reverse of `toStoredSeal`. */
export function toSealedKey(stored: StoredSeal): SealedKey {
  return {
    sealedSecret: Buffer.from(stored.sealed_secret, 'base64'),
    wrappedDataKey: Buffer.from(stored.wrapped_data_key, 'base64'),
    masterKeyId: stored.master_key_id,
  };
}

interface SettingsWithCodes {
  readonly test_accounts: readonly { readonly id: string; readonly sealed_otp_code?: StoredSeal }[];
}

/** The ids of the master keys that wrap codes of test accounts. */
export async function masterKeysOfCodes(em: SqlEntityManager): Promise<string[]> {
  const apps = await appsWithCodes(em);
  return [...new Set(apps.flatMap(({ codes }) => codes.map(({ master_key_id: id }) => id)))];
}

/**
 * Rewraps the codes of test accounts, which the settings of apps contain, under the current master key. An app is only
 * written if its settings are unchanged since they were read.
 *
 * Result: how many codes this call rewrapped.
 */
export async function rotateTestCodes(em: SqlEntityManager, vault: KeyVault): Promise<number> {
  // All of them before the first change, which begins the transaction.
  const rewrapped: { id: string; text: string; changed: string; count: number }[] = [];
  for (const { id, text, settings, codes } of await appsWithCodes(em)) {
    const formerly = codes.filter((code) => code.master_key_id !== vault.currentMasterKeyId);
    if (formerly.length === 0) continue;
    const accounts = await Promise.all(
      settings.test_accounts.map(async (account) => {
        const { sealed_otp_code: stored } = account;
        if (stored === undefined || stored.master_key_id === vault.currentMasterKeyId) return account;
        const sealed = await vault.rewrap(toSealedKey(stored), testCodeBinding(id, account.id));
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
