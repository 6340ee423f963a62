import assert from 'node:assert/strict';
import type { OperationContext } from '../../../operation-context.ts';
import type { SealedKey } from '../../../ports/key-vault.ts';
import type { SigningMethod, SigningMethods, SigningTask } from '../../../signing/sign-with-key.ts';
import { walletKeyBinding } from '../../base/sealed-keys/seal-bindings.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { WalletRow } from '../wallets/wallet-row.ts';

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

type KeyContext = Pick<OperationContext, 'em' | 'vault'>;

/** Signs with a wallet's key. The caller has authorized this use of the wallet. Throws SigningInputError. */
export async function signWithWalletKey<Method extends SigningMethod>(
  context: KeyContext,
  wallet: WalletRow,
  task: SigningTask<Method>,
): Promise<SigningMethods[Method]['data']> {
  const sealed = await findWalletKey(context, wallet);
  return context.vault.signWithWallet(sealed, walletKeyBinding(wallet), task);
}

/** The sealed key of a wallet. */
export async function findWalletKey(context: KeyContext, wallet: WalletRow): Promise<SealedKey> {
  const {
    rows: [sealed],
  } = await selectKey(context.em, { walletId: wallet.id });
  // INVARIANT: every wallet except custodial ones has a key, stored in the transaction that created it.
  assert(sealed !== undefined, `wallet ${wallet.id} has no key`);
  return sealed;
}
