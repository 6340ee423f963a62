import type { SentSeal } from '../../../engine/authorization/quorum-records.ts';
import type { SealBinding, SealedKey } from '../../../ports/key-store.ts';

// INVARIANT: the binding of a stored secret never changes. If it changed, the secret could not be opened.

interface SealingRow {
  readonly id: string;
  readonly app_id: string;
}

/** Returns the binding of a wallet's secret. */
export function walletKeyBinding(wallet: SealingRow & { readonly chain_type: string }): SealBinding {
  return { purpose: wallet.chain_type, rowId: wallet.id, appId: wallet.app_id };
}

/**
 * Returns the binding of the private key that decrypts an import. Imports that an earlier version began use the binding
 * of a wallet's key.
 */
export function walletImportBinding(begun: SealingRow & { readonly chain_type: string }): SealBinding {
  return { purpose: `wallet-import-${begun.chain_type}`, rowId: begun.id, appId: begun.app_id };
}

/** Returns the binding of the private key that signs an app's tokens. */
export function signingKeyBinding(key: SealingRow): SealBinding {
  return { purpose: 'app-signing-key', rowId: key.id, appId: key.app_id };
}

/** Returns the binding of a policy's secret, without the digest of the content, which the key store adds. */
export function policyBinding(policy: SealingRow): SealBinding {
  return { purpose: 'policy', rowId: policy.id, appId: policy.app_id };
}

/**
 * Returns the binding of the seal over the changes of a key quorum, without the digest of the changes. The seal proves
 * that the key store has verified the changes.
 */
export function quorumChangesBinding(quorum: SealingRow): SealBinding {
  return { purpose: 'key-quorum-changes', rowId: quorum.id, appId: quorum.app_id };
}

export function webhookSecretBinding(secret: SealingRow): SealBinding {
  return { purpose: 'webhook-secret', rowId: secret.id, appId: secret.app_id };
}

export function testCodeBinding(appId: string, accountId: string): SealBinding {
  return { purpose: 'test-account-code', rowId: accountId, appId };
}

/** Returns the binding of an app's key for fingerprints. */
export function fingerprintKeyBinding(key: SealingRow): SealBinding {
  return { purpose: 'fingerprint-key', rowId: key.id, appId: key.app_id };
}

/** Returns the binding of an app's voucher key. */
export function voucherKeyBinding(key: SealingRow): SealBinding {
  return { purpose: 'voucher-key', rowId: key.id, appId: key.app_id };
}

/** Returns the binding of the payment instructions of a fiat deposit account. */
export function depositInstructionsBinding(instructions: SealingRow): SealBinding {
  return { purpose: 'deposit-instructions', rowId: instructions.id, appId: instructions.app_id };
}

export function auditKeyBinding({ id }: Pick<SealingRow, 'id'>): SealBinding {
  return { purpose: id === 'checkpoints' ? 'audit-log-key' : 'audit-digest-key', rowId: id, appId: '' };
}

/**
 * The binding of a known value that is sealed under a master key. Opening it shows whether a master key is the right
 * one.
 */
export const masterKeyCheckBinding: SealBinding = { purpose: '', rowId: 'master-key-check', appId: '' };

/** A sealed secret as part of a JSON document. Bytes are base64. */
export interface StoredSeal {
  readonly sealed_secret: string;
  readonly wrapped_data_key: string;
  readonly master_key_id: string;
}

/** Converts a sealed secret to its JSON form. `toSealedKey` is the reverse. */
export function toStoredSeal({ sealedSecret, wrappedDataKey, masterKeyId }: SealedKey): StoredSeal {
  return {
    sealed_secret: Buffer.from(sealedSecret).toString('base64'),
    wrapped_data_key: Buffer.from(wrappedDataKey).toString('base64'),
    master_key_id: masterKeyId,
  };
}

export function toSealedKey(stored: StoredSeal): SealedKey {
  return {
    sealedSecret: Buffer.from(stored.sealed_secret, 'base64'),
    wrappedDataKey: Buffer.from(stored.wrapped_data_key, 'base64'),
    masterKeyId: stored.master_key_id,
  };
}

/** Converts a sealed secret to the form in which it is sent to the key store. */
export function sentSeal({ sealedSecret, wrappedDataKey, masterKeyId }: SealedKey): SentSeal {
  return { sealedSecret: base64(sealedSecret), wrappedDataKey: base64(wrappedDataKey), masterKeyId };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
