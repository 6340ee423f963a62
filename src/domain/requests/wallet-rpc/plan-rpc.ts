import assert from 'node:assert/strict';
import { normalizeAddress } from '../../../engine/assets/addresses.ts';
import { bytesToBase64 } from '../../../engine/crypto/encoding.ts';
import type { PolicyAction } from '../../../engine/policy/action.ts';
import { type ChainType, requireRpcMethod } from '../../../engine/signing/chains.ts';
import {
  type LightAccountFactory,
  lightAccountAddress,
  type VerifyingAccount,
} from '../../../engine/signing/ethereum/smart-accounts.ts';
import { parseQuantity } from '../../../engine/signing/fields.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type { WalletRpcRequest } from '../../../generated/schemas.ts';
import type { OperationContext, PlanContext } from '../../../ports/operation-context.ts';
import { findSmartAccountFactory } from '../../access/apps/smart-account-factory.ts';
import { findUserByAccount } from '../../access/user-records/find-user.ts';
import { buildEthereum } from '../../money/sending/build-ethereum.ts';
import { callChain, requireChain } from '../../money/sending/call-chain.ts';
import { findNonce } from '../../money/sending/nonces.ts';
import { buildCalls, type CallsPlan, planBatch } from '../../money/sending/plan-batch.ts';
import { type EthereumPlan, planEthereum } from '../../money/sending/plan-ethereum.ts';
import { buildSolana, planSolana, type SolanaPlan } from '../../money/sending/plan-solana.ts';
import { buildTron, planTron, TRON_MAINNET, type TronPlan } from '../../money/sending/plan-tron.ts';
import {
  buildOperation,
  type OperationPlan,
  planOperation,
} from '../../money/sending/plan-user-operation.ts';
import {
  type PlannedSend,
  planSend,
  type RpcRequest,
  type RpcSender,
} from '../../money/sending/rpc-sender.ts';
import { sparkSenders } from '../../money/spark/plan-spark.ts';
import { askSparkNetwork, isSparkQuery } from '../../money/spark/spark.ts';
import type { AuthorizedUse } from '../../wallets/wallet-uses/use-wallet.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import type { WalletRow } from '../../wallets/wallets/wallet.entity.ts';

const ethereumTransaction: RpcSender<RpcRequest<'eth_sendTransaction'>, EthereumPlan> = {
  plan(context, { address }, request) {
    requireOptionsFit(request);
    const { caip2, experimental_data_suffix: dataSuffix } = request;
    return planEthereum(context, {
      caip2,
      address,
      transaction: request.params.transaction,
      dataSuffix,
    });
  },
  build: (context, plan) => buildEthereum(context, plan, 'eth_sendTransaction'),
  options: ({ reference_id: referenceId }) => ({ referenceId }),
  answer: ({ caip2, reference_id: referenceId }, { request }, { hash, transactionId }) => ({
    hash,
    caip2,
    transaction_id: transactionId,
    transaction_request: request,
    ...(referenceId === undefined ? {} : { reference_id: referenceId }),
  }),
};

const ethereumCalls: RpcSender<RpcRequest<'wallet_sendCalls'>, CallsPlan> = {
  plan(context, { address }, request) {
    requireOptionsFit(request);
    const { caip2, experimental_data_suffix: dataSuffix } = request;
    return planBatch(context, { caip2, address, calls: request.params.calls, dataSuffix });
  },
  build: buildCalls,
  options: () => ({}),
  answer: ({ caip2 }, _built, { transactionId }) => ({ transaction_id: transactionId, caip2 }),
};

const solanaTransaction: RpcSender<RpcRequest<'signAndSendTransaction'>, SolanaPlan> = {
  plan(context, { address }, request) {
    requireOptionsFit(request);
    const { caip2, params, sponsor: isSponsored } = request;
    return planSolana(context, { caip2, address, transaction: params.transaction, isSponsored });
  },
  build: async (_context, plan) => buildSolana(plan, 'signAndSendTransaction'),
  options: ({ reference_id: referenceId, optimistic_broadcast: isOptimistic }) => ({
    referenceId,
    isOptimistic,
  }),
  answer: ({ caip2, reference_id: referenceId }, _built, { hash, bytes, transactionId }) => ({
    hash,
    caip2,
    transaction_id: transactionId,
    signed_transaction: bytesToBase64(bytes),
    ...(referenceId === undefined ? {} : { reference_id: referenceId }),
  }),
};

const tronTransaction: RpcSender<RpcRequest<'tron_sendTransaction'>, TronPlan> = {
  plan: (context, { address }, { caip2 = TRON_MAINNET, params }) =>
    planTron(context, { caip2, address, rawData: params.raw_data }),
  build: async (_context, plan) => buildTron(plan, 'tron_sendTransaction'),
  options: ({ params }) => ({ referenceId: params.reference_id }),
  answer: ({ params }, { chain }, { hash, transactionId }) => ({
    hash,
    caip2: chain.caip2,
    transaction_id: transactionId,
    ...(params.reference_id === undefined ? {} : { reference_id: params.reference_id }),
  }),
};

const sponsoredTransaction: RpcSender<RpcRequest<'eth_sendTransaction'>, OperationPlan> = {
  plan(context, { address }, { caip2, params, experimental_data_suffix: dataSuffix }) {
    return planOperation(context, { caip2, address, dataSuffix, transaction: params.transaction });
  },
  build: async (context, plan) => buildOperation(context, plan, 'eth_sendTransaction'),
  options: ethereumTransaction.options,
  answer: ({ caip2, reference_id: referenceId }, _built, { hash, transactionId }) => ({
    // The bundler creates the transaction that carries the operation. Its hash is reported in events.
    hash: '',
    caip2,
    transaction_id: transactionId,
    user_operation_hash: hash,
    ...(referenceId === undefined ? {} : { reference_id: referenceId }),
  }),
};

const sponsoredCalls: RpcSender<RpcRequest<'wallet_sendCalls'>, OperationPlan> = {
  plan(context, { address }, { caip2, params, experimental_data_suffix: dataSuffix }) {
    return planOperation(context, { caip2, address, dataSuffix, calls: params.calls });
  },
  build: async (context, plan) => buildOperation(context, plan, 'wallet_sendCalls'),
  options: () => ({}),
  answer: ethereumCalls.answer,
};

export type SendingMethod =
  | 'eth_sendTransaction'
  | 'wallet_sendCalls'
  | 'signAndSendTransaction'
  | 'tron_sendTransaction'
  | keyof typeof sparkSenders;

type SendingRequest = RpcRequest<SendingMethod>;

const sendingMethods: Readonly<Record<SendingMethod, true>> = {
  eth_sendTransaction: true,
  wallet_sendCalls: true,
  signAndSendTransaction: true,
  tron_sendTransaction: true,
  transfer: true,
  transferTokens: true,
  claimStaticDeposit: true,
  withdraw: true,
  payLightningInvoice: true,
};

export function isSendingRequest(request: WalletRpcRequest): request is SendingRequest {
  return Object.hasOwn(sendingMethods, request.method);
}

/**
 * Plans a send request from the state of its chain.
 *
 * @throws the ApiError or SigningInputError of the sender for a request that cannot be executed.
 */
function planRpcSend(context: PlanContext, wallet: WalletRow, request: SendingRequest): Promise<PlannedSend> {
  const given = { context, wallet };
  switch (request.method) {
    case 'eth_sendTransaction':
      return request.sponsor === true
        ? planSend(sponsoredTransaction, request, given)
        : planSend(ethereumTransaction, request, given);
    case 'wallet_sendCalls':
      return request.sponsor === true
        ? planSend(sponsoredCalls, request, given)
        : planSend(ethereumCalls, request, given);
    case 'signAndSendTransaction':
      return planSend(solanaTransaction, request, given);
    case 'tron_sendTransaction':
      return planSend(tronTransaction, request, given);
    case 'transfer':
      return planSend(sparkSenders.transfer, request, given);
    case 'transferTokens':
      return planSend(sparkSenders.transferTokens, request, given);
    case 'claimStaticDeposit':
      return planSend(sparkSenders.claimStaticDeposit, request, given);
    case 'withdraw':
      return planSend(sparkSenders.withdraw, request, given);
    case 'payLightningInvoice':
      return planSend(sparkSenders.payLightningInvoice, request, given);
  }
}

/**
 * Refuses sponsorship options without sponsorship.
 *
 * CHOICE: the app and the paymaster agree on the asset for sponsoring, so the option has no effect here.
 *
 * @throws ApiError invalid_data
 */
function requireOptionsFit({ sponsor, sponsor_options: options }: Sponsorable): void {
  if (options === undefined || sponsor === true) return;
  throw invalidField('/sponsor_options', 'expected only with `sponsor`');
}

interface Sponsorable {
  readonly sponsor?: boolean | undefined;
  readonly sponsor_options?: object | undefined;
}

type Request = RpcRequest<'eth_sign7702Authorization'>;

/**
 * Reads the wallet's transaction count from the chain, for an authorization without a nonce. Undefined if the
 * authorization has a nonce.
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
 * Fills in the nonce that the account will have: the next one, or the one after it when the account itself sends the
 * transaction.
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

/** The external data that an RPC request needs. It is read before the transaction begins. */
export type RpcPlan =
  | { readonly kind: 'send'; readonly send: PlannedSend }
  /** The response of a Spark network about the wallet, in wire form. */
  | { readonly kind: 'network-response'; readonly response: object }
  /**
   * The request only makes a signature. `pendingCount` is the chain's transaction count, for an authorization without
   * a nonce.
   */
  | {
      readonly kind: 'signature';
      readonly pendingCount?: bigint | undefined;
      /** The smart wallet that will verify the signature, if the request asks for one. */
      readonly smartAccount?: SmartAccount | undefined;
    };

/** A smart wallet that the wallet owns, on one chain. */
interface SmartAccount {
  readonly verifying: VerifyingAccount;
  readonly factory: LightAccountFactory;
  readonly isDeployed: boolean;
}

/** An RPC request in the form that policies see, and a function that executes it once they have allowed it. */
export interface PreparedRpc {
  readonly action: PolicyAction;
  /** See `PreparedUse`. */
  readonly onlySigns?: boolean;
  /** Executes the request, calls `use.recordOrDeny` once, and returns the wire data of the method's response. */
  perform(use: AuthorizedUse): Promise<unknown>;
}

/** Returns whether the signature is to be verified by the wallet's smart wallet (ERC-1271). */
function asksForSmartAccount(request: WalletRpcRequest): boolean {
  return 'signature_options' in request && request.signature_options?.type === 'erc1271';
}

/**
 * Finds the smart wallet that the wallet owns on the chain of the request.
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
 * Reads the external data that an RPC request needs.
 *
 * @throws ApiError not_found; for a request that cannot be executed, the ApiError or SigningInputError of the method.
 */
export async function planRpc(
  context: PlanContext,
  walletId: string,
  request: WalletRpcRequest,
): Promise<RpcPlan> {
  const needsChain =
    request.method === 'eth_sign7702Authorization' ||
    isSparkQuery(request) ||
    isSendingRequest(request) ||
    asksForSmartAccount(request);
  if (!needsChain) return { kind: 'signature' };
  const wallet = await findWallet(context, walletId);
  requireRpcMethod(wallet.chain_type as ChainType, request.method);
  if (isSparkQuery(request))
    return { kind: 'network-response', response: await askSparkNetwork(context, wallet, request) };
  if (request.method === 'eth_sign7702Authorization') {
    return { kind: 'signature', pendingCount: await planAuthorizationNonce(context, wallet, request) };
  }
  if (asksForSmartAccount(request))
    return { kind: 'signature', smartAccount: await planSmartAccount(context, wallet, request) };
  assert(isSendingRequest(request), 'others need nothing from outside');
  return { kind: 'send', send: await planRpcSend(context, wallet, request) };
}
