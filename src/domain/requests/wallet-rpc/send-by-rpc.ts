import assert from 'node:assert/strict';
import type { OperationContext } from '../../../operation-context.ts';
import type { BuiltTransaction } from '../../money/sending/built-transaction.ts';
import type { RpcRequest } from '../../money/sending/rpc-sender.ts';
import { sendBuilt } from '../../money/sending/send-built.ts';
import { takePlan } from '../../money/sending/take-plan.ts';
import { authorizeUse } from '../../wallets/wallet-uses/authorize-use.ts';
import type { FoundWallet } from '../../wallets/wallets/wallet-row.ts';
import { type SendingMethod, senderOf } from './rpc-senders.ts';

/**
 * Fills in, judges, signs and sends a transaction of a wallet. The chain's dry run comes before the policies, whose
 * subject is the bytes that are signed; it is broadcast once the request's transaction is committed.
 *
 * Result: the wire data of the method's answer.
 *
 * @throws ApiError and SigningInputError: the codes of `requireOwner`, of `planEthereum` and the like;
 * policy_violation; after the commit what the chain says to it.
 */
export async function sendByRpc(
  context: OperationContext,
  wallet: FoundWallet,
  request: RpcRequest<SendingMethod>,
): Promise<object> {
  const sender = senderOf(request);
  let built: BuiltTransaction | undefined;
  const build = async () => {
    const plan = await takePlan(context, () => sender.plan(context, wallet, request));
    built = await sender.build(context, plan, request);
    return built.action;
  };
  const use = await authorizeUse(context, wallet, {
    operation: 'walletRpc',
    request,
    decode: build,
    mayBeSigner: true,
  });
  assert(built !== undefined, 'an authorized use was decoded');
  // Before the broadcast is left for after the commit: what refuses it there shall not hide the use.
  await use.record();
  const { method } = request;
  const sent = await sendBuilt(context, wallet, built, { method, ...sender.options(request) });
  return sender.answer(request, built, sent);
}
