import { SpentRequestError } from '../../../authorization/spent-requests.ts';
import { ApiError } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { SigningMethod, SigningMethods, SigningTask } from '../../../signing/sign-with-key.ts';
import { walletKeyBinding } from '../../base/sealed-keys/seal-bindings.ts';
import { findWalletKey } from '../wallets/find-wallet-key.ts';
import { askForUse, authorizedUse } from '../wallets/wallet-authority.ts';
import type { WalletRow } from '../wallets/wallet-row.ts';

type KeyContext = Pick<OperationContext, 'app' | 'em' | 'nowMs' | 'proof' | 'vault'>;

/** Signs with a wallet's key. The caller has authorized this use of the wallet. Throws SigningInputError. */
export async function signWithWalletKey<Method extends SigningMethod>(
  context: KeyContext,
  wallet: WalletRow,
  task: SigningTask<Method>,
): Promise<SigningMethods[Method]['data']> {
  const { authority, ...sealed } = await findWalletKey(context, wallet);
  const use = await authorizedUse(context, wallet, authority);
  return askForUse(context, use, (shown) =>
    context.vault.signWithWallet(sealed, walletKeyBinding(wallet), task, shown),
  ).catch((error: unknown) => {
    if (!(error instanceof SpentRequestError)) throw error;
    throw new ApiError('transaction_broadcast_failure', error.message);
  });
}
