import { ApiError, invalidField } from '../../../errors.ts';
import type { TransferRequest } from '../../../generated/schemas.ts';
import type { OperationContext, PreparationContext } from '../../../operation-context.ts';
import { type Prepared, unwrapPrepared } from '../../../prepared.ts';
import { type Decimal, decimalText, fromRaw } from '../../wallets/balances/decimal.ts';
import { authorizeUse } from '../../wallets/wallet-uses/authorize-use.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import { sendBuilt } from '../sending/send-built.ts';
import { beginWalletAction, type NewExchangeStep, requireFreshNonce } from './begin-wallet-action.ts';
import { feesOf, type PlannedExchange } from './plan-exchange.ts';
import { planTransfer, type TransferPlan } from './plan-transfer.ts';
import { fixesArrival, readTransfer, type TransferTerms, transferAction } from './transfer-terms.ts';
import type { WalletActionRow } from './wallet-action-row.ts';

export interface TransferInput {
  readonly walletId: string;
  readonly body: TransferRequest;
  /** From `prepareTransfer`. */
  readonly prepared: Prepared<TransferPlan>;
}

/**
 * Moves an asset out of a wallet. The wallet's owner or one of its additional signers must have signed the request, when
 * there is an owner, and every policy that applies must allow the body. The transaction is signed and kept together with
 * the action, in one transaction of the database, and broadcast after it; the job that follows transactions sends the
 * same bytes again until the chain has them, so that a crash at any point neither loses the transfer nor makes it twice.
 * What arrives as another asset or on another chain is deposited with the exchange, whose quote is kept with the action.
 *
 * @throws ApiError not_found; invalid_data; not_supported; the codes of `requireOwner`; policy_violation;
 * resource_conflict for a nonce that this wallet has seen; what `planTransfer` throws.
 */
export async function transferFromWallet(
  context: OperationContext,
  { walletId, body, prepared }: TransferInput,
): Promise<WalletActionRow> {
  const wallet = await findWallet(context, walletId);
  const use = await authorizeUse(context, wallet, {
    operation: 'transferFromWallet',
    request: body,
    decode() {
      const terms = readTransferBody(wallet, body);
      // Where the amount that arrives is fixed, only the plan says what policies judge: how much is spent.
      const spent = fixesArrival(terms) ? spentBy(unwrapPrepared(prepared)) : undefined;
      return { action: transferAction(body, terms, spent), terms };
    },
    mayBeSigner: true,
  });
  const { terms } = use.decoded;
  await requireFreshNonce(context, wallet.id, body.nonce);
  await use.record();
  const transfer = unwrapPrepared(prepared);
  const sent = await sendBuilt(afterCommitContext(context), wallet, await transfer.build(context), {
    method: 'transfer',
    referenceId: body.reference_id,
  });
  return beginWalletAction(context, wallet.id, {
    type: 'transfer',
    nonce: body.nonce,
    referenceId: body.reference_id,
    details: detailsOf(body, terms, transfer),
    steps: [
      { type: stepTypes[wallet.chain_type] ?? 'external_transaction', transactionId: sent.transactionId },
      ...(transfer.exchange === undefined ? [] : [exchangeStep(transfer.exchange)]),
    ],
  });
}

/**
 * Asks the chain what a transfer will need.
 *
 * @throws what the verb throws for a transfer that cannot be carried out.
 */
export async function prepareTransfer(
  context: PreparationContext,
  walletId: string,
  body: TransferRequest,
): Promise<TransferPlan> {
  const wallet = await findWallet(context, walletId);
  return planTransfer(context, wallet, readTransferBody(wallet, body));
}

/**
 * The context for what follows the commit: there is an action then, so a chain's refusal ends the action as `rejected`
 * and does not become the answer.
 */
function afterCommitContext(context: OperationContext): OperationContext {
  return {
    ...context,
    afterCommit: (work) =>
      context.afterCommit(async () => {
        try {
          await work();
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
        }
      }),
  };
}

const stepTypes: Readonly<Record<string, string>> = {
  ethereum: 'evm_transaction',
  solana: 'svm_transaction',
  tron: 'tvm_transaction',
};

/**
 * Reads the body of a transfer as far as no chain need be asked.
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
    // CHOICE: fees are taken out of what an exchange delivers; a plain transfer arrives whole.
    throw new ApiError('not_supported', '/fee_configuration: no fee is taken from a plain transfer');
  }
  return terms;
}

/** The wire fields that say what was asked for. */
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

/** What of the destination differs from the source. */
function arrivalOf({ source, destination }: PlannedExchange): object {
  return {
    ...(destination.asset === source.asset ? {} : { destination_asset: destination.asset }),
    ...(destination.chain === source.chain ? {} : { destination_chain: destination.chain.name }),
  };
}

function exchangeStep(exchange: PlannedExchange): NewExchangeStep {
  const { destination, quote } = exchange;
  return {
    type: 'external_transaction',
    caip2: destination.chain.caip2,
    quoteId: quote.id,
    delivery: {
      destination_amount: decimalText(fromRaw(quote.rawOutput, destination.decimals)),
      fees: feesOf(exchange),
    },
  };
}
