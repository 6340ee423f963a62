import { SpentRequestError } from '../../../authorization/spent-requests.ts';
import type { AuthorizedUse } from '../../../authorization/wallet-authority.ts';
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
  const found = findWalletKey(context, wallet);
  const { authority, ...sealed } = found instanceof Promise ? await found : found;
  const use = authority === null ? undefined : await authorizedUse(context, wallet, authority);
  const sign = (shown: AuthorizedUse | undefined) =>
    context.vault.signWithWallet(sealed, walletKeyBinding(wallet), task, shown);
  try {
    return await (use === undefined ? sign(use) : askForUse(context, use, sign));
  } catch (error) {
    if (!(error instanceof SpentRequestError)) throw error;
    throw new ApiError('transaction_broadcast_failure', error.message);
  }
}
