import assert from 'node:assert/strict';
import type { OperationContext } from '../../../operation-context.ts';
import type { SealedKey } from '../../../ports/key-vault.ts';
import { walletKeyBinding } from '../../base/sealed-keys/seal-bindings.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { WalletRow } from '../wallets/wallet-row.ts';
import { decodeWalletSecret, type WalletSecret } from '../wallets/wallet-secret.ts';

// HOT: runs for every signature (bench `stored`, `policy`).

const selectKey = prepareQuery<{ walletId: string }, SealedKey>((database, { walletId }) =>
  database
    .selectFrom('wallet_keys')
    .select([
      'sealed_secret as sealedSecret',
      'wrapped_data_key as wrappedDataKey',
      'master_key_id as masterKeyId',
    ])
    .where('wallet_id', '=', walletId),
);

/** Opens a wallet's secret while `use` runs and wipes it afterwards, so `use` must not keep references to it. */
export async function useWalletKey<T>(
  context: Pick<OperationContext, 'em' | 'vault'>,
  wallet: WalletRow,
  use: (secret: WalletSecret) => T | Promise<T>,
): Promise<T> {
  const {
    rows: [sealed],
  } = await selectKey(context.em, { walletId: wallet.id });
  // INVARIANT: every wallet except custodial ones has a key, stored in the transaction that created it.
  assert(sealed !== undefined, `wallet ${wallet.id} has no key`);
  return context.vault.withSecret(sealed, walletKeyBinding(wallet), (bytes) =>
    use(decodeWalletSecret(bytes)),
  );
}
