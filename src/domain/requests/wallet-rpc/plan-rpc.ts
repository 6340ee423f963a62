import assert from 'node:assert/strict';
import { normalizeAddress } from '../../../engine/assets/addresses.ts';
import type { PolicyAction } from '../../../engine/policy/action.ts';
import { type ChainType, requireRpcMethod } from '../../../engine/signing/chains.ts';
import {
  type LightAccountFactory,
  lightAccountAddress,
  type VerifyingAccount,
} from '../../../engine/signing/ethereum/light-account.ts';
import { parseQuantity } from '../../../engine/signing/fields.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type { WalletRpcRequest } from '../../../generated/schemas.ts';
import type { OperationContext, PlanContext } from '../../../ports/operation-context.ts';
import { findSmartAccountFactory } from '../../access/apps/setting-parsers.ts';
import { findUserByAccount } from '../../access/user-records/find-user.ts';
import { callChain, requireChain } from '../../money/sending/call-chain.ts';
import { findNonce } from '../../money/sending/nonces.ts';
import type { PlannedSend, RpcRequest } from '../../money/sending/rpc-sender.ts';
import { isSparkQuestion, planSparkAnswer } from '../../money/spark/spark.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import type { WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import { isSendingRequest, planRpcSend } from './rpc-senders.ts';

type Request = RpcRequest<'eth_sign7702Authorization'>;

/**
 * The wallet's transaction count on the chain, for an authorization without a nonce.
 *
 * @throws ApiError invalid_data for an authorization for every chain without a nonce; not_supported;
 * transaction_broadcast_failure.
 */
async function planAuthorizationNonce(
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

/** The external data an rpc request needs, fetched before its transaction begins. */
export type RpcPlan =
  | { readonly kind: 'send'; readonly send: PlannedSend }
  /** A Spark network's response about the wallet, in wire form. */
  | { readonly kind: 'spark'; readonly answer: object }
  /** Only a signature. `pendingCount` is the chain's transaction count, for an authorization without a nonce. */
  | {
      readonly kind: 'signature';
      readonly pendingCount?: bigint | undefined;
      /** The smart wallet that is to verify the signature. */
      readonly smartAccount?: SmartAccount | undefined;
    };

/** A smart wallet of the wallet's user, on one chain. */
interface SmartAccount {
  readonly verifying: VerifyingAccount;
  readonly factory: LightAccountFactory;
  readonly isDeployed: boolean;
}

/** An rpc request as policies see it, and its execution once they have allowed it. */
export interface DecodedRpc {
  readonly action: PolicyAction;
  /** As `DecodedUse` has it. */
  readonly onlySigns?: boolean;
  /** Executes the request, calls `record` once, and returns the wire data of the method's response. */
  perform(record: () => Promise<void>): Promise<unknown>;
}

/** A request for a signature that the wallet's smart wallet verifies (ERC-1271). */
function asksForSmartAccount(request: WalletRpcRequest): boolean {
  return 'signature_options' in request && request.signature_options?.type === 'erc1271';
}

/**
 * The smart wallet of the wallet on the chain of the request.
 *
 * @throws ApiError invalid_data without a chain; not_supported for a wallet without a smart wallet and for a chain that
 * is not configured; transaction_broadcast_failure.
 */
async function planSmartAccount(
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

/**
 * Queries the chain for what an rpc request needs.
 *
 * @throws the verb's errors for a request that cannot be executed.
 */
export async function planRpc(
  context: PlanContext,
  walletId: string,
  request: WalletRpcRequest,
): Promise<RpcPlan> {
  const needsChain =
    request.method === 'eth_sign7702Authorization' ||
    isSparkQuestion(request) ||
    isSendingRequest(request) ||
    asksForSmartAccount(request);
  if (!needsChain) return { kind: 'signature' };
  const wallet = await findWallet(context, walletId);
  requireRpcMethod(wallet.chain_type as ChainType, request.method);
  if (isSparkQuestion(request))
    return { kind: 'spark', answer: await planSparkAnswer(context, wallet, request) };
  if (request.method === 'eth_sign7702Authorization') {
    return { kind: 'signature', pendingCount: await planAuthorizationNonce(context, wallet, request) };
  }
  if (asksForSmartAccount(request))
    return { kind: 'signature', smartAccount: await planSmartAccount(context, wallet, request) };
  assert(isSendingRequest(request), 'others need nothing from outside');
  return { kind: 'send', send: await planRpcSend(context, wallet, request) };
}
