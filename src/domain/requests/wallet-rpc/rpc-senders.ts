import { bytesToBase64 } from '../../../engine/crypto/encoding.ts';
import { invalidField } from '../../../errors.ts';
import type { WalletRpcRequest } from '../../../generated/schemas.ts';
import type { PlanContext } from '../../../ports/operation-context.ts';
import { buildEthereum } from '../../money/sending/build-ethereum.ts';
import { type EthereumPlan, planEthereum } from '../../money/sending/plan-ethereum.ts';
import {
  type PlannedSend,
  planSend,
  type RpcRequest,
  type RpcSender,
} from '../../money/sending/rpc-sender.ts';
import { buildCalls, type CallsPlan, planBatch } from '../../money/sending/send-calls.ts';
import { buildOperation, type OperationPlan, planOperation } from '../../money/sending/send-operation.ts';
import { buildSolana, planSolana, type SolanaPlan } from '../../money/sending/send-solana.ts';
import { buildTron, planTron, TRON_MAINNET, type TronPlan } from '../../money/sending/send-tron.ts';
import { sparkSenders } from '../../money/spark/spark-senders.ts';
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
    // The bundler creates the transaction that carries the operation; its hash arrives with the events.
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

export type SendingRequest = RpcRequest<SendingMethod>;

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
 * Queries the chain for what a send request needs.
 *
 * @throws ApiError and SigningInputError: the sender's errors for a request that cannot be executed.
 */
export function planRpcSend(
  context: PlanContext,
  wallet: WalletRow,
  request: SendingRequest,
): Promise<PlannedSend> {
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
 * CHOICE: the asset in which the app is charged is agreed between the app and the paymaster, so it has no effect
 * here.
 */
function requireOptionsFit({ sponsor, sponsor_options: options }: Sponsorable): void {
  if (options === undefined || sponsor === true) return;
  throw invalidField('/sponsor_options', 'expected only with `sponsor`');
}

interface Sponsorable {
  readonly sponsor?: boolean | undefined;
  readonly sponsor_options?: object | undefined;
}
