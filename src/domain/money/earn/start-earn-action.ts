import type { WalletActionType } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import type { BuildTransaction } from '../sending/send-built.ts';
import { beginWalletAction } from '../wallet-actions/begin-wallet-action.ts';
import { sendSteps } from '../wallet-actions/send-steps.ts';
import type { WalletActionRow } from '../wallet-actions/wallet-action-row.ts';

/** The members that every request of an action may have. */
interface ActionBody {
  readonly nonce?: string | undefined;
  readonly reference_id?: string | undefined;
}

interface EarnAction {
  readonly type: WalletActionType;
  readonly body: ActionBody;
  readonly builds: readonly BuildTransaction[];
  readonly details: object;
  readonly terms: object;
}

/** Signs the transactions of an authorized action, and stores it with them. */
export async function startEarnAction(
  context: OperationContext,
  wallet: WalletRow,
  { type, body, builds, details, terms }: EarnAction,
): Promise<WalletActionRow> {
  const referenceId = body.reference_id;
  const steps = await sendSteps(context, wallet, { type, referenceId, builds, readsEffects: true });
  const action = { type, nonce: body.nonce, referenceId, details, terms, steps };
  return beginWalletAction(context, wallet.id, action);
}
