import assert from 'node:assert/strict';
import type { OperationContext } from '../../services.ts';
import type { Tables } from '../../storage/entities.ts';
import type { WalletRow } from './wallet-row.ts';
import { decodeWalletSecret, type WalletSecret } from './wallet-secret.ts';

/** Opens a wallet's secret for as long as `use` runs; it is wiped afterwards, so nothing of it may be kept. */
export async function useWalletKey<T>(
  context: Pick<OperationContext, 'em' | 'vault'>,
  wallet: WalletRow,
  use: (secret: WalletSecret) => T | Promise<T>,
): Promise<T> {
  const key = await context.em
    .getKysely<Tables>()
    .selectFrom('wallet_keys')
    .select(['sealed_secret', 'wrapped_data_key', 'master_key_id'])
    .where('wallet_id', '=', wallet.id)
    .executeTakeFirst();
  // INVARIANT: every wallet but a custodial one has its key, stored in the transaction that made it.
  assert(key !== undefined, `wallet ${wallet.id} has no key`);
  return context.vault.withSecret(
    { sealedSecret: key.sealed_secret, wrappedDataKey: key.wrapped_data_key, masterKeyId: key.master_key_id },
    { walletId: wallet.id, appId: wallet.app_id, chainType: wallet.chain_type },
    (bytes) => use(decodeWalletSecret(bytes)),
  );
}
