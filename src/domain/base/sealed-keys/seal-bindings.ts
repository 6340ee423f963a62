import type { SealBinding } from '../../../ports/key-vault.ts';

// INVARIANT: what a stored secret was sealed under never changes, or it does not open any more.

interface SealingRow {
  readonly id: string;
  readonly app_id: string;
}

/** What a wallet's secret is bound to. */
export function walletKeyBinding(wallet: SealingRow & { readonly chain_type: string }): SealBinding {
  return { purpose: wallet.chain_type, rowId: wallet.id, appId: wallet.app_id };
}

/** What the private key that an import is sealed to is bound to. */
export function walletImportBinding(begun: SealingRow & { readonly chain_type: string }): SealBinding {
  return { purpose: begun.chain_type, rowId: begun.id, appId: begun.app_id };
}

/** What the private half of an app's signing key is bound to. */
export function signingKeyBinding(key: SealingRow): SealBinding {
  return { purpose: 'app-signing-key', rowId: key.id, appId: key.app_id };
}

/** What a secret of a webhook endpoint is bound to. */
export function webhookSecretBinding(secret: SealingRow): SealBinding {
  return { purpose: 'webhook-secret', rowId: secret.id, appId: secret.app_id };
}

/** What the known value is bound to that tells whether a master key is the right one. */
export const masterKeyCheckBinding: SealBinding = { purpose: '', rowId: 'master-key-check', appId: '' };
