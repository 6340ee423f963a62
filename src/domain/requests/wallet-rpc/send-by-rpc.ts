import type { OperationContext } from '../../../operation-context.ts';
import type { PlannedSend } from '../../money/sending/rpc-sender.ts';
import { sendBuilt } from '../../money/sending/send-built.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import type { DecodedRpc } from './rpc-plan.ts';

/**
 * Builds a planned transaction; once policies have allowed its bytes, signs it and schedules the broadcast for after
 * the commit.
 *
 * @throws SigningInputError; from `perform` what `sendBuilt` throws.
 */
export async function decodeSend(
  context: OperationContext,
  wallet: WalletRow,
  send: PlannedSend,
): Promise<DecodedRpc> {
  const { transaction, options, answer } = await send.build(context);
  return {
    action: transaction.action,
    async perform(record) {
      // Recorded before the broadcast is scheduled, so that a refusal after the commit does not hide the use.
      await record();
      return answer(await sendBuilt(context, wallet, transaction, options));
    },
  };
}
