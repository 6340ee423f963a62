import { planWithoutAsking, prepareRpc } from '../../domain/requests/wallet-rpc/prepare-rpc.ts';
import type { RpcPlan } from '../../domain/requests/wallet-rpc/rpc-plan.ts';
import { signWithWallet } from '../../domain/requests/wallet-rpc/sign-with-wallet.ts';
import type { Preparation, PreparationAlone, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'walletRpc', RpcPlan> = ({ path, body }, context) =>
  prepareRpc(context, path.wallet_id, body);

export const prepareAlone: PreparationAlone<'walletRpc', RpcPlan> = ({ body }) => planWithoutAsking(body);

export const run: PreparedHandler<'walletRpc', RpcPlan> = ({ path, body }, context, prepared) =>
  signWithWallet(context, { walletId: path.wallet_id, request: body, prepared });
