import { normalizeAddress } from '../../../assets/normalize-address.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type { WalletRpcRequest } from '../../../generated/schemas.ts';
import type { PlanContext } from '../../../operation-context.ts';
import { lightAccountAddress } from '../../../signing/ethereum/light-account.ts';
import { findSmartAccountFactory } from '../../access/apps/smart-account-factory.ts';
import { findUserByAccount } from '../../access/user-records/find-user.ts';
import { callChain, requireChain } from '../../money/sending/call-chain.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import type { SmartAccount } from './rpc-plan.ts';

/** A request for a signature that the wallet's smart wallet verifies (ERC-1271). */
export function asksForSmartAccount(request: WalletRpcRequest): boolean {
  return 'signature_options' in request && request.signature_options?.type === 'erc1271';
}

/**
 * The smart wallet of the wallet on the chain of the request.
 *
 * @throws ApiError invalid_data without a chain; not_supported for a wallet without a smart wallet and for a chain that
 * is not configured; transaction_broadcast_failure.
 */
export async function planSmartAccount(
  context: PlanContext,
  wallet: Pick<WalletRow, 'address'>,
  request: WalletRpcRequest,
): Promise<SmartAccount> {
  const caip2 = 'caip2' in request ? request.caip2 : undefined;
  if (caip2 === undefined) throw invalidField('/caip2', 'is required for an ERC-1271 signature');
  const chain = requireChain(context, { caip2, kind: 'evm' });
  const factory = await findSmartAccountFactory(context);
  const address = lightAccountAddress(factory, wallet.address);
  await requireLinked(context, address);
  const code = await callChain(chain.code(address.toLowerCase()));
  return {
    verifying: { chain_id: Number(chain.chainId), address },
    factory,
    isDeployed: code.length > 0,
  };
}

async function requireLinked(context: PlanContext, address: string): Promise<void> {
  try {
    await findUserByAccount(context, { type: 'smart_wallet', subject: normalizeAddress(address) });
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'not_found') throw error;
    throw new ApiError(
      'not_supported',
      '/signature_options/type: expected a wallet that was created with `create_smart_wallet`',
    );
  }
}
