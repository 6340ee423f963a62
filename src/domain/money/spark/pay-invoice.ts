import { invalidField } from '../../../errors.ts';
import type {
  SparkLightningSendRequest,
  SparkPayLightningInvoiceRpcResponse,
  WalletRpcRequest,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { SparkInvoice } from '../../../ports/spark-operators.ts';
import { sparkAddress } from '../../../signing/spark.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import { callChain } from '../sending/call-chain.ts';
import { requireSpark, type SparkAccount } from './require-spark.ts';
import { requireHolding, type SparkBuilt, type SparkPlan, transferView } from './send-spark.ts';
import { isoTime, satoshi } from './spark-view.ts';

type Request = Extract<WalletRpcRequest, { method: 'payLightningInvoice' }>;

/**
 * CHOICE: the operators' node has no channels to other nodes, so it pays only its own invoices. Whether an invoice is
 * still unpaid is checked again on execution, so that two concurrent payments pay once.
 *
 * @throws ApiError invalid_data for an invoice of another node, an expired or paid invoice, an amount that does not
 * match, or a fee above the caller's maximum; insufficient_funds; not_supported.
 */
export async function planInvoicePayment(
  context: Pick<OperationContext, 'chains' | 'nowMs'>,
  wallet: WalletRow,
  { params, network }: Request,
): Promise<SparkPlan> {
  const account = requireSpark(context, wallet, network);
  const invoice = await requirePayable(account, params.invoice, context.nowMs);
  const sats = amountOf(invoice, params.amount_sats_to_send);
  const isOverSpark = params.prefer_spark === true && invoice.hasSparkAddress;
  const fee = isOverSpark ? 0n : await callChain(account.operators.quotePayment(sats));
  if (fee > BigInt(params.max_fee_sats)) {
    throw invalidField('/params/max_fee_sats', `expected at least \`${fee}\`, which the payment costs`);
  }
  await requireHolding(account, null, sats + fee);
  return {
    account,
    move: {
      from: account.address,
      to: sparkAddress(invoice.receiverKey, account.network),
      token: null,
      amount: String(sats),
      fee: String(fee),
      deposit: null,
      invoice: params.invoice.toLowerCase(),
    },
    payment: { paymentHash: invoice.paymentHash, isOverSpark },
  };
}

async function requirePayable(
  { operators, network }: SparkAccount,
  text: string,
  nowMs: number,
): Promise<SparkInvoice> {
  const invoice = await callChain(operators.readInvoice(text));
  const refuse = (message: string) => invalidField('/params/invoice', message);
  if (invoice === undefined) {
    throw refuse(`expected a BOLT 11 invoice of the operators of ${network}; they reach no other node`);
  }
  if (invoice.expiresAtMs <= nowMs) throw refuse(`the invoice expired at ${isoTime(invoice.expiresAtMs)}`);
  if (invoice.isPaid) throw refuse('the invoice was paid before');
  return invoice;
}

function amountOf({ sats }: SparkInvoice, chosen: number | undefined): bigint {
  if (sats === undefined) {
    if (chosen !== undefined) return BigInt(chosen);
    throw invalidField('/params/amount_sats_to_send', 'expected, since the invoice has no amount');
  }
  if (chosen === undefined) return sats;
  throw invalidField('/params/amount_sats_to_send', 'expected only for an invoice without an amount');
}

/** CHOICE: the payment hash prevents paying an invoice twice, so it is the idempotency key shown. */
export function paymentView(
  built: SparkBuilt,
  nowMs: number,
  encodedInvoice: string,
): NonNullable<SparkPayLightningInvoiceRpcResponse['data']> {
  const { operation, plan } = built;
  if (plan.payment?.isOverSpark === true) return transferView(built, nowMs);
  const view: SparkLightningSendRequest = {
    id: operation.id,
    created_at: isoTime(nowMs),
    updated_at: isoTime(nowMs),
    network: operation.network,
    encoded_invoice: encodedInvoice,
    fee: satoshi(BigInt(operation.fee)),
    idempotency_key: plan.payment?.paymentHash ?? '',
    status: 'LIGHTNING_PAYMENT_INITIATED',
    typename: 'LightningSendRequest',
  };
  return view;
}
