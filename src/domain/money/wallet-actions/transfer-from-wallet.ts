import { fixesArrival, type TransferTerms, transferAction } from '../../../actions/transfer-terms.ts';
import { type Decimal, decimalText, fromRaw } from '../../../assets/decimal.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type { TransferRequest } from '../../../generated/schemas.ts';
import type { OperationContext, PlanContext } from '../../../operation-context.ts';
import { type Planned, unwrapPlan } from '../../../planned.ts';
import { authorizeUse } from '../../wallets/wallet-uses/authorize-use.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import { beginWalletAction, type NewExternalStep, requireFreshNonce } from './begin-wallet-action.ts';
import { feesOf, type PlannedExchange } from './plan-exchange.ts';
import { planTransfer, type TransferPlan } from './plan-transfer.ts';
import { readTransfer } from './read-transfer.ts';
import { sendSteps } from './send-steps.ts';
import type { WalletActionRow } from './wallet-action-row.ts';

export interface TransferInput {
  readonly walletId: string;
  readonly body: TransferRequest;
  /** From `prepareTransfer`. */
  readonly planned: Planned<TransferPlan>;
}

/**
 * Transfers an asset out of a wallet. If the wallet has an owner, the owner or an additional signer must have signed
 * the request, and every applicable policy must allow the body. The transaction is signed and stored together with
 * the action in one database transaction and broadcast after the commit; the job that follows transactions broadcasts
 * the same bytes until the chain has them, so a crash at any point neither loses the transfer nor repeats it. A
 * transfer to another asset or chain pays the exchange's deposit, and the exchange's quote is stored with the action.
 *
 * @throws ApiError not_found; invalid_data; not_supported; the codes of `requireOwner`; policy_violation;
 * resource_conflict for a nonce that this wallet has already used; what `planTransfer` throws.
 */
export async function transferFromWallet(
  context: OperationContext,
  { walletId, body, planned }: TransferInput,
): Promise<WalletActionRow> {
  const wallet = await findWallet(context, walletId);
  const use = await authorizeUse(context, wallet, {
    operation: 'transferFromWallet',
    request: body,
    decode() {
      const terms = readTransferBody(wallet, body);
      // When the arriving amount is fixed, only the plan knows the amount spent, which policies evaluate.
      const spent = fixesArrival(terms) ? spentBy(unwrapPlan(planned)) : undefined;
      return { action: transferAction(body, terms, spent), terms };
    },
    mayBeSigner: true,
  });
  const { terms } = use.decoded;
  await requireFreshNonce(context, wallet.id, body.nonce);
  await use.record();
  const transfer = unwrapPlan(planned);
  const sent = await sendSteps(context, wallet, {
    type: 'transfer',
    referenceId: body.reference_id,
    builds: [transfer.build],
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
 * Queries the chain for what a transfer needs.
 *
 * @throws the verb's errors for a transfer that cannot be executed.
 */
export async function prepareTransfer(
  context: PlanContext,
  walletId: string,
  body: TransferRequest,
): Promise<TransferPlan> {
  const wallet = await findWallet(context, walletId);
  return planTransfer(context, wallet, readTransferBody(wallet, body));
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
    // CHOICE: fees are deducted from what an exchange delivers; a plain transfer arrives in full.
    throw new ApiError('not_supported', '/fee_configuration: no fee is taken from a plain transfer');
  }
  return terms;
}

/** The wire fields that describe the request. */
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

/** The destination fields that differ from the source. */
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
