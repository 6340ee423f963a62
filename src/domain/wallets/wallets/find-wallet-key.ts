import assert from 'node:assert/strict';
import type { OperationContext } from '../../../operation-context.ts';
import type { SealedKey } from '../../../ports/key-vault.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { WalletRow } from './wallet-row.ts';

// HOT: runs for every signature (bench `stored`, `policy`).

/** The sealed key of a wallet. */
export interface StoredWalletKey extends SealedKey {
  /** JSON of the `WalletAuthority` under which it is sealed; null without one. */
  readonly authority: string | null;
}

/** The columns of `wallet_keys` that a use needs, as members of `StoredWalletKey`. */
export const walletKeyColumns = [
  'wallet_keys.sealed_secret as sealedSecret',
  'wallet_keys.wrapped_data_key as wrappedDataKey',
  'wallet_keys.master_key_id as masterKeyId',
  'wallet_keys.authority',
] as const;

const selectKey = prepareQuery<{ walletId: string }, StoredWalletKey>((database, { walletId }) =>
  database.selectFrom('wallet_keys').select(walletKeyColumns).where('wallet_id', '=', walletId),
);

/** The sealed key of a wallet, which `findWalletWithKey` may have read with it. */
export function findWalletKey(
  { em }: Pick<OperationContext, 'em'>,
  wallet: Pick<WalletRow, 'id'> & { readonly [Name in keyof StoredWalletKey]?: StoredWalletKey[Name] | null },
): StoredWalletKey | Promise<StoredWalletKey> {
  const { sealedSecret, wrappedDataKey, masterKeyId, authority } = wallet;
  if (sealedSecret != null && wrappedDataKey != null && masterKeyId != null && authority !== undefined)
    return { sealedSecret, wrappedDataKey, masterKeyId, authority };
  return readWalletKey(em, wallet.id);
}

async function readWalletKey(em: OperationContext['em'], walletId: string): Promise<StoredWalletKey> {
  const {
    rows: [sealed],
  } = await selectKey(em, { walletId });
  // INVARIANT: every wallet except custodial ones has a key, stored in the transaction that created it.
  assert(sealed !== undefined, `wallet ${walletId} has no key`);
  return sealed;
}
