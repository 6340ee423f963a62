import assert from 'node:assert/strict';
import {
  fixesArrival,
  readTransferTerms,
  type TransferTerms,
  transferAction,
} from '../../../engine/actions/transfer-terms.ts';
import { type Decimal, decimalText, fromRaw } from '../../../engine/assets/decimal.ts';
import type { KnownAsset } from '../../../engine/assets/known-assets.ts';
import type { PolicyAction } from '../../../engine/policy/action.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type {
  Gas,
  QuoteWalletTransferRequest,
  TransferQuoteResponse,
  TransferRequest,
} from '../../../generated/schemas.ts';
import type { AnyChain } from '../../../ports/chains.ts';
import {
  type OperationContext,
  type PlanContext,
  type Planned,
  tryPlan,
  unwrapPlan,
} from '../../../ports/operation-context.ts';
import { findToken } from '../../access/chains/chains.ts';
import { requireAuthorization } from '../../access/owners/require-authorization.ts';
import { refusingTerms } from '../../base/actions/action-refusals.ts';
import { authorizeUse } from '../../wallets/wallet-uses/use-wallet.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import { signersOf, type WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import type { BuiltTransaction } from '../sending/broadcast.ts';
import { callChain, insufficientFunds } from '../sending/call-chain.ts';
import { gasOf } from './action-types.ts';
import { feesOf, type PlannedExchange, planExchange, requireRaw } from './plan-exchange.ts';
import { type PlannedTransfer, type TransferOrder, transferPlanners } from './transfer-planners.ts';
import type { WalletActionRow } from './wallet-action.entity.ts';
import { beginWalletAction, type NewExternalStep, requireFreshNonce, sendSteps } from './wallet-action.ts';

/** The terms of a requested transfer, and its plan. */
export interface PlannedTransferRequest {
  readonly terms: TransferTerms;
  /**
   * The plan is separate from the terms, because policies evaluate the terms even if the transfer cannot be executed.
   */
  readonly plan: Planned<TransferPlan>;
}

/** A transfer with all chain data that it needs. */
interface TransferPlan {
  readonly asset: KnownAsset;
  /** The amount in base units. */
  readonly rawAmount: bigint;
  readonly estimatedGas: Gas | null;
  /** The quote of the exchange that receives this transfer as its deposit, if any. */
  readonly exchange: PlannedExchange | undefined;
  /** Builds the bytes, inside the database transaction that signs them. */
  build(context: OperationContext): Promise<BuiltTransaction>;
}

/**
 * Plans a transfer from the state of the chain, and checks that the wallet can afford it. Call it outside any database
 * transaction.
 *
 * @throws ApiError invalid_data for an amount with more decimal places than the asset; not_supported; what
 * `planExchange` throws; insufficient_funds; transaction_execution_failure when the simulation fails;
 * transaction_broadcast_failure when the chain cannot be reached.
 */
async function planTransfer(
  context: PlanContext,
  wallet: WalletRow,
  terms: TransferTerms,
): Promise<TransferPlan> {
  const { chain } = terms.source;
  const known = requireSource(context, terms);
  const exchange = terms.isExchange ? await planExchange(context, wallet, terms) : undefined;
  const { asset, rawAmount, to } =
    exchange === undefined ? await readPlain(context, terms) : depositOf(exchange);
  const [balance = 0n] = await callChain(known.balances(wallet.address, [asset.tokenAddress]));
  if (balance < rawAmount) {
    const { tokenAddress } = asset;
    const payer = { caip2: chain.caip2, address: wallet.address, tokenAddress };
    throw insufficientFunds({ ...payer, needed: rawAmount, balance });
  }
  const order = { asset, rawAmount, from: wallet.address, to };
  const { estimatedFee, build } = await planSending(context, order);
  return { asset, rawAmount, exchange, estimatedGas: gasOf(chain, estimatedFee), build };
}

export function depositOf({ source, quote }: PlannedExchange): Omit<TransferOrder, 'from'> {
  return { asset: source, rawAmount: quote.rawInput, to: quote.depositAddress };
}

/** Plans the movement of an asset between two addresses from the state of its chain. */
export function planSending(context: PlanContext, order: TransferOrder): Promise<PlannedTransfer> {
  const { chain } = order.asset;
  const sender = transferPlanners[chain.chainType];
  assert(sender !== undefined, `transfers on ${chain.name} were refused before`);
  return sender(context, order);
}

/**
 * Finds the source chain, which must support transfers.
 *
 * @throws ApiError not_supported
 */
function requireSource(context: PlanContext, { source }: TransferTerms): AnyChain {
  const { chain } = source;
  if (transferPlanners[chain.chainType] === undefined) {
    throw new ApiError('not_supported', `/source/chain: no transfers on \`${chain.name}\` yet`);
  }
  const known = context.chains.find(chain.caip2);
  if (known === undefined) {
    throw new ApiError('not_supported', `/source/chain: the chain \`${chain.name}\` is not configured here`);
  }
  return known;
}

async function readPlain(context: PlanContext, terms: TransferTerms): Promise<Omit<TransferOrder, 'from'>> {
  const { source, amount, amountPointer, destination } = terms;
  const asset =
    'asset' in source ? source : await callChain(findToken(context, source.chain, source.tokenAddress));
  return { asset, rawAmount: requireRaw(asset, amount, amountPointer), to: destination };
}

/**
 * Estimates the gas of the deposit; null when the deposit cannot be planned, for example because the wallet lacks the
 * funds.
 */
export async function estimateDepositGas(
  context: PlanContext,
  wallet: WalletRow,
  exchange: PlannedExchange,
): Promise<Gas | null> {
  try {
    const { estimatedFee } = await planSending(context, { ...depositOf(exchange), from: wallet.address });
    return gasOf(exchange.source.chain, estimatedFee);
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}

/**
 * Reads the body of a transfer or of a transfer quote.
 *
 * @throws ApiError invalid_data naming the field; not_supported for a chain of another wallet type, and for an asset
 * that does not exist on the chain.
 */
function readTransfer(
  { chain_type: chainType, custody_chain: held }: Pick<WalletRow, 'chain_type' | 'custody_chain'>,
  body: TransferRequest | QuoteWalletTransferRequest,
): TransferTerms {
  const terms = refusingTerms(() => readTransferTerms(chainType, body));
  if (held !== null && held !== terms.source.chain.name) {
    throw new ApiError('not_supported', `/source/chain: the custodian holds this wallet on \`${held}\``);
  }
  return terms;
}

/**
 * Returns the action that policies evaluate for a transfer that is only analyzed, not executed.
 *
 * @throws ApiError what `readTransfer` throws; not_supported for an exchange, whose cost only a quote shows.
 */
export function decodeTransfer(chainType: string, body: TransferRequest): PolicyAction {
  return refusingTerms(() => transferAction(body, readTransferTerms(chainType, body)));
}

export interface QuotePlan {
  readonly exchange: PlannedExchange;
  readonly gas: Gas | null;
}

interface QuoteInput {
  readonly walletId: string;
  readonly body: QuoteWalletTransferRequest;
  /** The result of `planQuote`. */
  readonly planned: Planned<QuotePlan>;
}

/**
 * Returns the planned quote of a transfer that arrives as another asset or on another chain.
 *
 * @throws ApiError not_found; invalid_data for a plain transfer; not_supported; what `requireAuthorization` and
 * `planExchange` throw.
 */
export async function quoteWalletTransfer(
  context: OperationContext,
  { walletId, body, planned }: QuoteInput,
): Promise<TransferQuoteResponse> {
  const wallet = await findWallet(context, walletId);
  await requireAuthorization(context, { ownerId: wallet.owner_id, signers: signersOf(wallet) });
  const { exchange, gas } = unwrapPlan(planned);
  const { source, destination, quote } = exchange;
  return {
    source: body.source,
    destination: body.destination,
    amount_type: body.amount_type ?? 'exact_input',
    estimated_input_amount: decimalText(fromRaw(quote.rawInput, source.decimals)),
    estimated_output_amount: decimalText(fromRaw(quote.rawOutput, destination.decimals)),
    estimated_fees: feesOf(exchange),
    ...(gas === null ? {} : { estimated_gas: gas }),
    expires_at: quote.expiresAtSeconds,
  };
}

/**
 * Gets a quote from the exchange, and estimates the gas of the deposit.
 *
 * @throws ApiError with the codes that `quoteWalletTransfer` lists, for a transfer that cannot be quoted.
 */
export async function planQuote(
  context: PlanContext,
  walletId: string,
  body: QuoteWalletTransferRequest,
): Promise<QuotePlan> {
  const wallet = await findWallet(context, walletId);
  const terms = readTransfer(wallet, body);
  if (!terms.isExchange) {
    throw invalidField('/destination', 'a plain transfer needs no quote: expected another asset or chain');
  }
  if (wallet.custody_provider !== null) {
    throw new ApiError('not_supported', 'the custodian of this wallet takes no transfers from here yet');
  }
  requireSource(context, terms);
  const exchange = await planExchange(context, wallet, terms);
  return { exchange, gas: await estimateDepositGas(context, wallet, exchange) };
}

interface TransferInput {
  readonly walletId: string;
  readonly body: TransferRequest;
  /** The result of `planTransferRequest`. */
  readonly planned: Planned<PlannedTransferRequest>;
}

/**
 * Transfers an asset out of a wallet. If the wallet has an owner, the owner or an additional signer must have signed
 * the request, and every applicable policy must allow the body.
 *
 * The transaction is signed and stored together with the action in one database transaction, and broadcast after the
 * commit. The job that follows transactions broadcasts the same bytes until the chain has them. So a crash neither
 * loses the transfer nor repeats it.
 *
 * A transfer to another asset or chain pays the exchange's deposit, and the exchange's quote is stored with the
 * action.
 *
 * @throws ApiError not_found; invalid_data; not_supported; policy_violation; resource_conflict for a nonce that this
 * wallet has already used; what `requireAuthorization` and `planTransfer` throw.
 */
export async function transferFromWallet(
  context: OperationContext,
  { walletId, body, planned }: TransferInput,
): Promise<WalletActionRow> {
  const wallet = await findWallet(context, walletId);
  const use = await authorizeUse(context, wallet, {
    operation: 'transferFromWallet',
    request: body,
    async prepare() {
      const { terms, plan } = unwrapPlan(planned);
      // When the request fixes the amount that arrives, only the plan knows the amount to spend, which policies
      // evaluate.
      const spent = fixesArrival(terms) ? spentBy(unwrapPlan(plan)) : undefined;
      return { action: transferAction(body, terms, spent), terms, plan };
    },
    allowsSigners: true,
  });
  const { terms, plan } = use.prepared;
  await requireFreshNonce(context, wallet.id, body.nonce);
  await use.recordOrDeny();
  const transfer = unwrapPlan(plan);
  const sent = await sendSteps(context, wallet, {
    type: 'transfer',
    referenceId: body.reference_id,
    builds: [transfer.build],
    authorization: use.authorization,
  });
  return beginWalletAction(context, wallet.id, {
    type: 'transfer',
    nonce: body.nonce,
    referenceId: body.reference_id,
    details: detailsOf(body, terms, transfer),
    steps: [...sent, ...(transfer.exchange === undefined ? [] : [exchangeStep(transfer.exchange)])],
  });
}

/**
 * Reads the body of a transfer, and plans the transfer.
 *
 * @throws ApiError not_found; what `readTransferBody` throws for a body that this wallet cannot transfer.
 */
export async function planTransferRequest(
  context: PlanContext,
  walletId: string,
  body: TransferRequest,
): Promise<PlannedTransferRequest> {
  const wallet = await findWallet(context, walletId);
  const terms = readTransferBody(wallet, body);
  return { terms, plan: await tryPlan(() => planTransfer(context, wallet, terms)) };
}

/**
 * Reads the body of a transfer as far as possible without chain calls.
 *
 * @throws ApiError invalid_data naming the field; not_supported.
 */
export function readTransferBody(wallet: WalletRow, body: TransferRequest): TransferTerms {
  if (wallet.custody_provider !== null) {
    throw new ApiError('not_supported', 'the custodian of this wallet takes no transfers from here yet');
  }
  if (body.custody_options !== undefined) {
    throw invalidField('/custody_options', 'expected none: no custodian holds this wallet');
  }
  const terms = readTransfer(wallet, body);
  if (terms.appFeeBps > 0 && !terms.isExchange) {
    // CHOICE: fees are deducted from the amount that an exchange delivers. A plain transfer arrives in full.
    throw new ApiError('not_supported', '/fee_configuration: no fee is taken from a plain transfer');
  }
  return terms;
}

/** Returns the wire fields that describe the request. */
function detailsOf(body: TransferRequest, terms: TransferTerms, plan: TransferPlan): object {
  const { asset, exchange } = plan;
  const named = 'asset' in body.source;
  return {
    ...(named
      ? { source_asset: asset.asset }
      : { source_asset_address: asset.tokenAddress, source_asset_decimals: asset.decimals }),
    source_chain: asset.chain.name,
    source_amount: decimalText(spentBy(plan)),
    destination_address: body.destination.address,
    ...(exchange === undefined ? {} : arrivalOf(exchange)),
    amount_type: terms.amountType,
    estimated_gas: plan.estimatedGas,
    estimated_fees: exchange === undefined ? [] : feesOf(exchange),
  };
}

function spentBy({ asset, rawAmount }: TransferPlan): Decimal {
  return fromRaw(rawAmount, asset.decimals);
}

/** Returns the destination fields that differ from the source. */
function arrivalOf({ source, destination }: PlannedExchange): object {
  return {
    ...(destination.asset === source.asset ? {} : { destination_asset: destination.asset }),
    ...(destination.chain === source.chain ? {} : { destination_chain: destination.chain.name }),
  };
}

function exchangeStep(exchange: PlannedExchange): NewExternalStep {
  const { destination, quote } = exchange;
  return {
    type: 'external_transaction',
    kind: 'exchange',
    caip2: destination.chain.caip2,
    externalId: quote.id,
    delivery: {
      destination_amount: decimalText(fromRaw(quote.rawOutput, destination.decimals)),
      fees: feesOf(exchange),
    },
  };
}
