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

const selectKey = prepareQuery<{ walletId: string }, StoredWalletKey>((database, { walletId }) =>
  database
    .selectFrom('wallet_keys')
    .select([
      'sealed_secret as sealedSecret',
      'wrapped_data_key as wrappedDataKey',
      'master_key_id as masterKeyId',
      'authority',
    ])
    .where('wallet_id', '=', walletId),
);

/** The sealed key of a wallet. */
export async function findWalletKey(
  { em }: Pick<OperationContext, 'em'>,
  wallet: Pick<WalletRow, 'id'>,
): Promise<StoredWalletKey> {
  const {
    rows: [sealed],
  } = await selectKey(em, { walletId: wallet.id });
  // INVARIANT: every wallet except custodial ones has a key, stored in the transaction that created it.
  assert(sealed !== undefined, `wallet ${wallet.id} has no key`);
  return sealed;
}
