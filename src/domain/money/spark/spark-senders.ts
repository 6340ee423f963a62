import type { RpcRequest, RpcSender } from '../sending/rpc-sender.ts';
import {
  buildSpark,
  exitView,
  paymentView,
  planDepositClaim,
  planInvoicePayment,
  planSparkTransfer,
  planTokenTransfer,
  planWithdrawal,
  type SparkBuilt,
  type SparkPlan,
  transferView,
} from './plan-spark.ts';

type SparkSender<Method extends string> = RpcSender<RpcRequest<Method>, SparkPlan, SparkBuilt>;

const unreferenced = () => ({});

const transfer: SparkSender<'transfer'> = {
  plan: planSparkTransfer,
  build: buildSpark,
  options: unreferenced,
  answer: (_request, built, { sentAtMs }) => transferView(built, sentAtMs),
};

const transferTokens: SparkSender<'transferTokens'> = {
  plan: planTokenTransfer,
  build: buildSpark,
  options: unreferenced,
  answer: (_request, _built, { hash }) => ({ id: hash }),
};

const claimStaticDeposit: SparkSender<'claimStaticDeposit'> = {
  plan: planDepositClaim,
  build: buildSpark,
  options: unreferenced,
  answer: (_request, { operation }) => ({ transfer_id: operation.id }),
};

const withdraw: SparkSender<'withdraw'> = {
  plan: planWithdrawal,
  build: buildSpark,
  options: unreferenced,
  answer: ({ params }, built, { hash, sentAtMs }) => exitView(built, { hash, params, nowMs: sentAtMs }),
};

const payLightningInvoice: SparkSender<'payLightningInvoice'> = {
  plan: planInvoicePayment,
  build: buildSpark,
  options: unreferenced,
  answer: ({ params }, built, { sentAtMs }) => paymentView(built, sentAtMs, params.invoice),
};

/** The methods that move money on Spark, by name. */
export const sparkSenders = {
  transfer,
  transferTokens,
  claimStaticDeposit,
  withdraw,
  payLightningInvoice,
} as const;
