import type { WalletRpcRequest } from '../../../generated/schemas.ts';
import type { OperationContext, PlanContext } from '../../../ports/operation-context.ts';
import type { WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import type { BuiltTransaction, SendOptions, SentTransaction } from './broadcast.ts';

export type RpcRequest<Method extends string> = Extract<WalletRpcRequest, { method: Method }>;

/** Plans and builds the transactions of one RPC method. */
export interface RpcSender<Request, Plan, Built extends BuiltTransaction = BuiltTransaction> {
  /** Reads the chain data that the request needs. Runs before the database transaction. */
  plan(context: PlanContext, wallet: WalletRow, request: Request): Promise<Plan>;
  /** Builds the bytes, inside the database transaction. */
  build(context: OperationContext, plan: Plan, request: Request): Promise<Built>;
  options(request: Request): Omit<SendOptions, 'method'>;
  /** Returns the `data` of the method's response. */
  answer(request: Request, built: Built, sent: SentTransaction): object;
}

/** A send request of any method, with the chain data that it needs. */
export interface PlannedSend {
  /** Builds the bytes, inside the database transaction. */
  build(context: OperationContext): Promise<BuiltSend>;
}

/** A built transaction that is ready to be signed, and how to respond to its request. */
interface BuiltSend {
  readonly transaction: BuiltTransaction;
  readonly options: SendOptions;
  /** Returns the `data` of the method's response. */
  answer(sent: SentTransaction): object;
}

/** Plans a request. Returns the plan as a function that builds the transaction. */
export async function planSend<
  Request extends { readonly method: string },
  Plan,
  Built extends BuiltTransaction,
>(
  sender: RpcSender<Request, Plan, Built>,
  request: Request,
  { context, wallet }: { readonly context: PlanContext; readonly wallet: WalletRow },
): Promise<PlannedSend> {
  return plannedSend(sender, request, await sender.plan(context, wallet, request));
}

// A separate function, so that the context of the plan cannot be used inside the database transaction.
function plannedSend<Request extends { readonly method: string }, Plan, Built extends BuiltTransaction>(
  sender: RpcSender<Request, Plan, Built>,
  request: Request,
  plan: Plan,
): PlannedSend {
  return {
    async build(context) {
      const built = await sender.build(context, plan, request);
      return {
        transaction: built,
        options: { method: request.method, ...sender.options(request) },
        answer: (sent) => sender.answer(request, built, sent),
      };
    },
  };
}
