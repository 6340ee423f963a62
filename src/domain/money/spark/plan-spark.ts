import { decodeRpcAction } from '../../../engine/actions/decode-action.ts';
import {
  encodeSparkOperation,
  isLayer1Address,
  readSparkAddress,
  readTokenIdentifier,
  type SparkOperation,
  sparkAddress,
} from '../../../engine/signing/spark.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type {
  SparkCoopExitRequest,
  SparkLightningSendRequest,
  SparkPayLightningInvoiceRpcResponse,
  SparkTransfer,
  WalletRpcRequest,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import type { SparkInvoice } from '../../../ports/spark.ts';
import type { WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import type { BuiltTransaction } from '../sending/broadcast.ts';
import { callChain, insufficientFunds } from '../sending/call-chain.ts';
import type { RpcRequest, RpcSender } from '../sending/rpc-sender.ts';
import { findDeposit, isoTime, requireSpark, type SparkAccount, satoshi } from './spark.ts';

type Request<Method extends string> = Extract<WalletRpcRequest, { method: Method }>;

/** A movement of funds on Spark, with the operators' quotes. */
interface SparkPlan {
  readonly account: SparkAccount;
  readonly move: Omit<SparkOperation, 'id' | 'network' | 'owner'>;
  /** Set for a Lightning payment. */
  readonly payment?: { readonly paymentHash: string; readonly isOverSpark: boolean };
  /** Set for a withdrawal: the parts of the fee, and the time when its quote expires. */
  readonly exit?: {
    readonly operatorSats: bigint;
    readonly networkSats: bigint;
    readonly expiresAtMs: number;
  };
}

interface SparkBuilt extends BuiltTransaction {
  readonly plan: SparkPlan;
  readonly operation: SparkOperation;
}

type Context = Pick<OperationContext, 'chains'>;

/**
 * Plans a transfer of sats to another Spark address.
 *
 * @throws ApiError invalid_data for a receiver of another network; insufficient_funds; not_supported;
 * transaction_broadcast_failure when the operators cannot be reached.
 */
async function planSparkTransfer(
  context: Context,
  wallet: WalletRow,
  { params, network }: Request<'transfer'>,
): Promise<SparkPlan> {
  const account = requireSpark(context, wallet, network);
  requireReceiver(account, params.receiver_spark_address);
  await requireHolding(account, null, BigInt(params.amount_sats));
  const move = { from: account.address, to: params.receiver_spark_address, token: null };
  return { account, move: { ...move, amount: String(params.amount_sats), fee: '0', deposit: null } };
}

/**
 * Plans a transfer of tokens.
 *
 * CHOICE: the port `SparkOperators` has balances, not outputs. So outputs cannot be chosen, and a selection strategy
 * has no effect.
 *
 * @throws ApiError invalid_data; insufficient_funds; not_supported, also for selected outputs;
 * transaction_broadcast_failure when the operators cannot be reached.
 */
async function planTokenTransfer(
  context: Context,
  wallet: WalletRow,
  { params, network }: Request<'transferTokens'>,
): Promise<SparkPlan> {
  const account = requireSpark(context, wallet, network);
  const { token_identifier: token, receiver_spark_address: to, token_amount: amount } = params;
  if (params.selected_outputs !== undefined) {
    throw new ApiError('not_supported', '/params/selected_outputs: the operators keep sums, not outputs');
  }
  if (readTokenIdentifier(token, account.network) === undefined) {
    throw invalidField('/params/token_identifier', `expected a token of ${account.network}, \`btkn…\``);
  }
  requireReceiver(account, to);
  await requireHolding(account, token, BigInt(amount));
  return {
    account,
    move: { from: account.address, to, token, amount: String(amount), fee: '0', deposit: null },
  };
}

/**
 * Plans the claim of a deposit to the wallet's deposit address.
 *
 * @throws ApiError invalid_data for an unknown deposit, and for an amount or a signature that differs from the quote;
 * not_supported; transaction_broadcast_failure when the operators cannot be reached.
 */
async function planDepositClaim(
  context: Context,
  wallet: WalletRow,
  { params, network }: Request<'claimStaticDeposit'>,
): Promise<SparkPlan> {
  const account = requireSpark(context, wallet, network);
  const quote = await findDeposit(account, params);
  if (BigInt(params.credit_amount_sats) !== quote.creditSats) {
    throw invalidField('/params/credit_amount_sats', `expected \`${quote.creditSats}\` as quoted`);
  }
  if (params.signature.toLowerCase() !== quote.signature) {
    throw invalidField('/params/signature', 'expected the signature of the quote');
  }
  return {
    account,
    move: {
      from: account.depositAddress,
      to: account.address,
      token: null,
      amount: String(quote.creditSats),
      fee: String(quote.feeSats),
      deposit: params.transaction_id.toLowerCase(),
    },
  };
}

/**
 * Plans a withdrawal to a Bitcoin address.
 *
 * @throws ApiError invalid_data for an invalid address, quote or fee; insufficient_funds; not_supported;
 * transaction_broadcast_failure when the operators cannot be reached.
 */
async function planWithdrawal(
  context: Context,
  wallet: WalletRow,
  { params, network }: Request<'withdraw'>,
): Promise<SparkPlan> {
  const account = requireSpark(context, wallet, network);
  const { onchain_address: onchainAddress, fee_quote_id: quoteId, exit_speed: speed } = params;
  requireLayer1(account, onchainAddress);
  const { sats: held } = await callChain(account.operators.holdings(account.address));
  const asked = params.amount_sats === undefined ? held : BigInt(params.amount_sats);
  const quote = await callChain(account.operators.quoteWithdrawal({ onchainAddress, sats: asked, quoteId }));
  if (quote === undefined) {
    throw invalidField(
      '/params/fee_quote_id',
      'expected a quote for this address and amount that still holds',
    );
  }
  const { operatorSats, networkSats } = quote.fees[speed];
  const fee = operatorSats + networkSats;
  if (params.fee_amount_sats !== undefined && BigInt(params.fee_amount_sats) !== fee) {
    throw invalidField('/params/fee_amount_sats', `expected \`${fee}\` as quoted for ${speed}`);
  }
  // A withdrawal of the whole balance leaves nothing to pay the fee with, so the fee is deducted from it.
  const isDeducted = params.deduct_fee_from_withdrawal_amount === true || params.amount_sats === undefined;
  const amount = isDeducted ? asked - fee : asked;
  if (amount <= 0n || amount + fee > held) {
    const { address, chain } = account;
    const needed = (amount > 0n ? amount : 1n) + fee;
    throw insufficientFunds({ caip2: chain.caip2, address, tokenAddress: null, needed, balance: held });
  }
  const move = { from: account.address, to: onchainAddress, token: null, deposit: null };
  return {
    account,
    move: { ...move, amount: String(amount), fee: String(fee) },
    exit: { operatorSats, networkSats, expiresAtMs: quote.expiresAtMs },
  };
}

function requireLayer1({ network }: Pick<SparkAccount, 'network'>, address: string): void {
  if (isLayer1Address(address, network)) return;
  throw invalidField('/params/onchain_address', `expected a Bitcoin address of ${network}`);
}

function requireReceiver({ network }: SparkAccount, address: string): void {
  if (readSparkAddress(address, network) !== undefined) return;
  throw invalidField('/params/receiver_spark_address', `expected a Spark address of ${network}`);
}

/**
 * Requires that the account holds an amount of sats or of a token.
 *
 * @throws ApiError insufficient_funds; transaction_broadcast_failure when the operators cannot be reached.
 */
async function requireHolding(
  { chain, address }: SparkAccount,
  token: string | null,
  amount: bigint,
): Promise<void> {
  const [held = 0n] = await callChain(chain.balances(address, [token]));
  if (held < amount) {
    const { caip2 } = chain;
    throw insufficientFunds({ caip2, address, tokenAddress: token, needed: amount, balance: held });
  }
}

async function buildSpark(
  context: Pick<OperationContext, 'ids'>,
  plan: SparkPlan,
  request: WalletRpcRequest,
): Promise<SparkBuilt> {
  const { network, publicKey: owner, chain } = plan.account;
  const operation: SparkOperation = { id: context.ids.uuid(), network, owner, ...plan.move };
  return {
    chain,
    action: await decodeRpcAction(request),
    plan,
    operation,
    sign: async (key) =>
      encodeSparkOperation({ operation, signature: await key.sign('spark_operation', operation) }),
  };
}

/**
 * Converts a transfer to wire form.
 *
 * CHOICE: the port `SparkOperators` has balances, not leaves, so a transfer lists none.
 */
function transferView({ operation, plan }: SparkBuilt, nowMs: number): SparkTransfer {
  return {
    id: operation.id,
    sender_identity_public_key: operation.owner,
    receiver_identity_public_key: readSparkAddress(operation.to, operation.network) ?? plan.account.publicKey,
    status: 'TRANSFER_STATUS_SENDER_KEY_TWEAKED',
    total_value: Number(operation.amount),
    created_time: isoTime(nowMs),
    updated_time: isoTime(nowMs),
    leaves: [],
    type: 'TRANSFER',
    transfer_direction: 'OUTGOING',
  };
}

function exitView(
  { operation, plan }: SparkBuilt,
  { hash, nowMs, params }: { hash: string; nowMs: number; params: Request<'withdraw'>['params'] },
): SparkCoopExitRequest {
  const { operatorSats = 0n, networkSats = 0n, expiresAtMs = nowMs } = plan.exit ?? {};
  return {
    id: operation.id,
    coop_exit_txid: hash,
    network: operation.network,
    status: 'INITIATED',
    exit_speed: params.exit_speed,
    ...(params.fee_quote_id === undefined ? {} : { fee_quote_id: params.fee_quote_id }),
    fee: satoshi(operatorSats),
    l1_broadcast_fee: satoshi(networkSats),
    created_at: isoTime(nowMs),
    updated_at: isoTime(nowMs),
    expires_at: isoTime(expiresAtMs),
  };
}

type PayInvoiceRequest = Extract<WalletRpcRequest, { method: 'payLightningInvoice' }>;

/**
 * Plans the payment of a Lightning invoice.
 *
 * CHOICE: the operators' node has no channels to other nodes, so it pays only its own invoices. Whether an invoice is
 * unpaid is checked again on execution, so that of two concurrent payments only one pays.
 *
 * @throws ApiError invalid_data for an invoice of another node, an expired or paid invoice, an amount that does not
 * match, or a fee above the caller's maximum; insufficient_funds; not_supported; transaction_broadcast_failure when the
 * operators cannot be reached.
 */
async function planInvoicePayment(
  context: Pick<OperationContext, 'chains' | 'nowMs'>,
  wallet: WalletRow,
  { params, network }: PayInvoiceRequest,
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

/**
 * Converts a payment to wire form.
 *
 * CHOICE: the idempotency key is the payment hash, because an invoice with this hash cannot be paid twice.
 */
function paymentView(
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
