import type { WalletRpcRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import type { BuiltTransaction } from './built-transaction.ts';
import type { SendOptions, SentTransaction } from './send-built.ts';

export type RpcRequest<Method extends string> = Extract<WalletRpcRequest, { method: Method }>;

/** How one rpc method sends. */
export interface RpcSender<Request, Plan, Built extends BuiltTransaction = BuiltTransaction> {
  /** Asks the chain; before the transaction where that is possible. */
  plan(context: OperationContext, wallet: WalletRow, request: Request): Promise<Plan>;
  /** Fixes the bytes, inside the transaction. */
  build(context: OperationContext, plan: Plan, request: Request): Promise<Built>;
  options(request: Request): Omit<SendOptions, 'method'>;
  /** The wire data of the method's answer. */
  answer(request: Request, built: Built, sent: SentTransaction): object;
}
