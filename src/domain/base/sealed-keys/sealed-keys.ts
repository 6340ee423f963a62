import type { SqlEntityManager } from '@mikro-orm/sql';
import type { SentSeal } from '../../../engine/authorization/quorum-records.ts';
import type { KeyVault, SealBinding, SealedKey } from '../../../ports/key-vault.ts';
import type { Tables } from '../../tables.ts';

// INVARIANT: the binding of a stored secret never changes; otherwise the secret could not be opened.

interface SealingRow {
  readonly id: string;
  readonly app_id: string;
}

/** The binding of a wallet's secret. */
export function walletKeyBinding(wallet: SealingRow & { readonly chain_type: string }): SealBinding {
  return { purpose: wallet.chain_type, rowId: wallet.id, appId: wallet.app_id };
}

/** The binding of the private key that decrypts an import. Imports of earlier versions have that of a wallet's key. */
export function walletImportBinding(begun: SealingRow & { readonly chain_type: string }): SealBinding {
  return { purpose: `wallet-import-${begun.chain_type}`, rowId: begun.id, appId: begun.app_id };
}

/** The binding of an app's private signing key. */
export function signingKeyBinding(key: SealingRow): SealBinding {
  return { purpose: 'app-signing-key', rowId: key.id, appId: key.app_id };
}

/** The binding of a policy's secret, without the digest of the content. */
export function policyBinding(policy: SealingRow): SealBinding {
  return { purpose: 'policy', rowId: policy.id, appId: policy.app_id };
}

/** The binding of what shows that the vault has seen the changes of a key quorum, without their digest. */
export function quorumChangesBinding(quorum: SealingRow): SealBinding {
  return { purpose: 'key-quorum-changes', rowId: quorum.id, appId: quorum.app_id };
}

/** The binding of a webhook secret. */
export function webhookSecretBinding(secret: SealingRow): SealBinding {
  return { purpose: 'webhook-secret', rowId: secret.id, appId: secret.app_id };
}

/** The binding of the one-time code of a test account. */
export function testCodeBinding(appId: string, accountId: string): SealBinding {
  return { purpose: 'test-account-code', rowId: accountId, appId };
}

/** The binding of an app's key for fingerprints. */
export function fingerprintKeyBinding(key: SealingRow): SealBinding {
  return { purpose: 'fingerprint-key', rowId: key.id, appId: key.app_id };
}

/** The binding of an app's voucher key. */
export function voucherKeyBinding(key: SealingRow): SealBinding {
  return { purpose: 'voucher-key', rowId: key.id, appId: key.app_id };
}

/** The binding of the payment instructions of a fiat deposit account. */
export function depositInstructionsBinding(instructions: SealingRow): SealBinding {
  return { purpose: 'deposit-instructions', rowId: instructions.id, appId: instructions.app_id };
}

/** The binding of a key of the audit log. */
export function auditKeyBinding({ id }: Pick<SealingRow, 'id'>): SealBinding {
  return { purpose: id === 'checkpoints' ? 'audit-log-key' : 'audit-digest-key', rowId: id, appId: '' };
}

/** The binding of the known value that verifies a master key. */
export const masterKeyCheckBinding: SealBinding = { purpose: '', rowId: 'master-key-check', appId: '' };

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

/** A sealed secret as text, as calls of the vault carry it. */
export function sentSeal({ sealedSecret, wrappedDataKey, masterKeyId }: SealedKey): SentSeal {
  return { sealedSecret: base64(sealedSecret), wrappedDataKey: base64(wrappedDataKey), masterKeyId };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
