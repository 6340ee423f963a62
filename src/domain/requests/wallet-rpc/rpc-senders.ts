import { bytesToBase64 } from '../../../crypto/encoding.ts';
import { invalidField } from '../../../errors.ts';
import type { WalletRpcRequest } from '../../../generated/schemas.ts';
import { buildEthereum } from '../../money/sending/build-ethereum.ts';
import { type EthereumPlan, planEthereum } from '../../money/sending/plan-ethereum.ts';
import type { RpcRequest, RpcSender } from '../../money/sending/rpc-sender.ts';
import { buildCalls, type CallsPlan, planCalls } from '../../money/sending/send-calls.ts';
import { buildOperation, type OperationPlan, planOperation } from '../../money/sending/send-operation.ts';
import { buildSolana, planSolana, type SolanaPlan } from '../../money/sending/send-solana.ts';
import { buildTron, planTron, TRON_MAINNET, type TronPlan } from '../../money/sending/send-tron.ts';
import { sparkSenders } from '../../money/spark/spark-senders.ts';

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
    return planCalls(context, { caip2, address, calls: request.params.calls, dataSuffix });
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
    // The transaction that carries the operation is made by the bundler; its hash comes with the events.
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

/** Those that send otherwise when the gas is sponsored. */
const operationSenders = {
  eth_sendTransaction: sponsoredTransaction,
  wallet_sendCalls: sponsoredCalls,
} as const;

/** The methods that send, by name. */
export const rpcSenders = {
  eth_sendTransaction: ethereumTransaction,
  wallet_sendCalls: ethereumCalls,
  signAndSendTransaction: solanaTransaction,
  tron_sendTransaction: tronTransaction,
  ...sparkSenders,
} as const;

export type SendingMethod = keyof typeof rpcSenders;

export function isSendingRequest(request: WalletRpcRequest): request is RpcRequest<SendingMethod> {
  return Object.hasOwn(rpcSenders, request.method);
}

/** The sender of a request, without the types that tie the two together. */
export function senderOf(request: RpcRequest<SendingMethod>): RpcSender<unknown, unknown> {
  const isSponsored = 'sponsor' in request && request.sponsor === true;
  const senders: Readonly<Record<string, unknown>> = isSponsored
    ? { ...rpcSenders, ...operationSenders }
    : rpcSenders;
  return senders[request.method] as RpcSender<unknown, unknown>;
}

/** CHOICE: which asset the app is charged in is between it and who pays; it changes nothing here. */
function requireOptionsFit({ sponsor, sponsor_options: options }: Sponsorable): void {
  if (options === undefined || sponsor === true) return;
  throw invalidField('/sponsor_options', 'expected only with `sponsor`');
}

interface Sponsorable {
  readonly sponsor?: boolean | undefined;
  readonly sponsor_options?: object | undefined;
}
