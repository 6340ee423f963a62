import { ApiError } from '../../../errors.ts';
import type { WalletActionType } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import type { WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import { type BuildTransaction, type BuiltTransaction, sendInOrder } from '../sending/broadcast.ts';
import type { NewTransactionStep } from './wallet-action.ts';

interface StepsToSend {
  readonly type: WalletActionType;
  readonly referenceId?: string | undefined;
  /** Each builds one transaction. Their order is the order in which the transactions take effect. */
  readonly builds: readonly BuildTransaction[];
  readonly readsEffects?: boolean | undefined;
}

/**
 * Signs and stores all transactions of an action in the transaction of the request, and schedules their broadcast, in
 * order, for after the commit. The caller has authorized the action and passes the result to `beginWalletAction` in
 * the same transaction. Nothing is signed later, without the request.
 */
export async function sendSteps(
  context: OperationContext,
  wallet: WalletRow,
  { type, referenceId, builds, readsEffects }: StepsToSend,
): Promise<NewTransactionStep[]> {
  const sent = await sendInOrder(afterCommitContext(context), wallet, builds, { method: type, referenceId });
  return sent.map(({ built, transactionId }) => ({
    type: stepType(wallet, built),
    transactionId,
    readsEffects,
  }));
}

/**
 * The context for work after the commit. The action exists by then, so a refusal by the chain ends the action as
 * `rejected` and does not become an error response.
 */
function afterCommitContext(context: OperationContext): OperationContext {
  return {
    ...context,
    afterCommit: (work) =>
      context.afterCommit(async () => {
        try {
          await work();
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
        }
      }),
  };
}

const stepTypes: Readonly<Record<string, string>> = {
  ethereum: 'evm_transaction',
  solana: 'svm_transaction',
  tron: 'tvm_transaction',
};
function stepType(wallet: WalletRow, { sponsorship }: BuiltTransaction): string {
  if (sponsorship === 'operation') return 'evm_user_operation';
  return stepTypes[wallet.chain_type] ?? 'external_transaction';
}
