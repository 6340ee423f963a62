import type { OperationContext } from '../../../operation-context.ts';
import type { PlannedSend } from '../../money/sending/rpc-sender.ts';
import { sendBuilt } from '../../money/sending/send-built.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import type { DecodedRpc } from './rpc-plan.ts';

/**
 * Fills in a transaction of a wallet whose chain has been asked; once policies have allowed the bytes that it will have,
 * signs it and leaves the broadcast for after the commit.
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
      // Before the broadcast is left for after the commit: what refuses it there shall not hide the use.
      await record();
      return answer(await sendBuilt(context, wallet, transaction, options));
    },
  };
}
