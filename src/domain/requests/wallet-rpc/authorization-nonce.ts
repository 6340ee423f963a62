import { invalidField } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { parseQuantity } from '../../../signing/fields.ts';
import { callChain, requireChain } from '../../money/sending/call-chain.ts';
import { findNonce } from '../../money/sending/find-nonce.ts';
import type { RpcRequest } from '../../money/sending/rpc-sender.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';

type Request = RpcRequest<'eth_sign7702Authorization'>;

/**
 * The wallet's transaction count on the chain, for an authorization without a nonce.
 *
 * @throws ApiError invalid_data for an authorization for every chain without a nonce; not_supported;
 * transaction_broadcast_failure.
 */
export async function planAuthorizationNonce(
  context: Pick<OperationContext, 'chains'>,
  { address }: Pick<WalletRow, 'address'>,
  { params }: Request,
): Promise<bigint | undefined> {
  if (params.nonce !== undefined) return undefined;
  const chainId = parseQuantity(params.chain_id, '/chain_id', 256);
  if (chainId === 0n) {
    throw invalidField(
      '/params/nonce',
      'expected a nonce: an authorization for every chain has no chain to read it from',
    );
  }
  const terms = { caip2: `eip155:${chainId}`, kind: 'evm', pointer: '/params/chain_id' } as const;
  return callChain(requireChain(context, terms).nonce(address));
}

/**
 * The params with the nonce the account will have: the next one, or the one after it when the account itself sends
 * the transaction.
 */
export async function fillAuthorizationNonce(
  context: Pick<OperationContext, 'em' | 'nowMs'>,
  { address }: Pick<WalletRow, 'address'>,
  { params, pendingCount }: Pick<Request, 'params'> & { readonly pendingCount: bigint | undefined },
): Promise<Request['params']> {
  if (params.nonce !== undefined || pendingCount === undefined) return params;
  const caip2 = `eip155:${parseQuantity(params.chain_id, '/chain_id', 256)}`;
  const isSelf = params.executor === 'self';
  const { nonce } = await findNonce(context, { caip2, address }, pendingCount, () => (isSelf ? 2 : 1));
  return { ...params, nonce: isSelf ? nonce + 1 : nonce };
}
