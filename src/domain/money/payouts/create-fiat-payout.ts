import { type PayoutTerms, payoutAction } from '../../../actions/payout-terms.ts';
import { decimalText, fromRaw } from '../../../assets/decimal.ts';
import { ApiError } from '../../../errors.ts';
import type { CreateFiatPayoutRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { type Planned, unwrapPlan } from '../../../planned.ts';
import { authorizeUse } from '../../wallets/wallet-uses/authorize-use.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import { getFiatAccountForUpdate } from '../fiat-accounts/find-account.ts';
import { requireCustomer } from '../fiat-customers/require-customer.ts';
import { beginWalletAction, requireFreshNonce } from '../wallet-actions/begin-wallet-action.ts';
import { payoutStepId } from '../wallet-actions/external-steps.ts';
import { sendSteps } from '../wallet-actions/send-steps.ts';
import type { WalletActionRow } from '../wallet-actions/wallet-action-row.ts';
import { customerOf, type PayoutPlan, unknownAccount } from './plan-payout.ts';
import { readPayout } from './read-payout.ts';

/** The deposit must be in a block before the payout expires, so nothing is signed when less than this is left. */
const LEAST_SECONDS = 60;

export interface PayoutInput {
  readonly walletId: string;
  readonly body: CreateFiatPayoutRequest;
  /** From `preparePayout`. */
  readonly planned: Planned<PayoutPlan>;
}

/**
 * Pays out to a bank account. The deposit to the provider is signed and stored together with the action in one
 * database transaction and broadcast after the commit, so a crash at any point neither loses nor repeats it; the
 * provider pays the bank once it has the deposit, or gives it back.
 *
 * @throws ApiError not_found; the codes of `requireOwner`; policy_violation; resource_conflict for a nonce that this
 * wallet has already used; what `preparePayout` throws.
 */
export async function createFiatPayout(
  context: OperationContext,
  input: PayoutInput,
): Promise<WalletActionRow> {
  try {
    return await payOut(context, input);
  } catch (error) {
    // Other errors are those of the transaction, which is run again.
    if (error instanceof ApiError && 'value' in input.planned) input.planned.value.cancel();
    throw error;
  }
}

async function payOut(
  context: OperationContext,
  { walletId, body, planned }: PayoutInput,
): Promise<WalletActionRow> {
  const wallet = await findWallet(context, walletId);
  const use = await authorizeUse(context, wallet, {
    operation: 'createFiatPayout',
    request: body,
    decode() {
      const terms = readPayout(wallet, body);
      return { action: payoutAction(body, terms), terms };
    },
    mayBeSigner: true,
  });
  await requireFreshNonce(context, wallet.id, body.nonce);
  await use.record();
  const plan = unwrapPlan(planned);
  await requireStillPayable(context, plan);
  const sent = await sendSteps(context, wallet, { type: 'payout', builds: [plan.build] });
  return beginWalletAction(context, wallet.id, {
    type: 'payout',
    nonce: body.nonce,
    referenceId: undefined,
    details: detailsOf(body, use.decoded.terms, plan),
    steps: [
      ...sent,
      {
        type: 'external_transaction',
        kind: 'payout',
        externalId: payoutStepId({ ...plan.account, id: plan.opened.id }),
        caip2: null,
        delivery: {},
      },
    ],
  });
}

/** The account is locked, so that a payout and its removal come one after the other. */
async function requireStillPayable(
  context: OperationContext,
  { account, opened }: PayoutPlan,
): Promise<void> {
  const locked = await getFiatAccountForUpdate(context, account.entityId, account.id);
  if (locked === undefined) throw unknownAccount();
  await requireCustomer(context, customerOf(locked));
  if (opened.expiresAtSeconds - Math.floor(context.nowMs / 1000) < LEAST_SECONDS) {
    const message = 'the terms of the provider have expired; nothing was signed or sent';
    throw new ApiError('transaction_broadcast_failure', message);
  }
}

/** The wire fields of responses and of events. */
function detailsOf(
  body: CreateFiatPayoutRequest,
  { asset, rawAmount, developerFeePercent }: PayoutTerms,
  plan: PayoutPlan,
): object {
  const { account, rail } = plan;
  return {
    provider: account.provider,
    environment: account.environment,
    source: body.source,
    destination: body.destination,
    developer_fee_percent: developerFeePercent,
    source_asset: asset.asset,
    source_chain: asset.chain.name,
    source_amount: decimalText(fromRaw(rawAmount, asset.decimals)),
    destination_fiat_account_id: account.id,
    destination_currency: account.currency,
    destination_payment_rail: rail,
  };
}
