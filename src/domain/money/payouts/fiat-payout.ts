import { type PayoutTerms, payoutAction, readPayoutTerms } from '../../../engine/actions/payout-terms.ts';
import { decimalText, fromRaw } from '../../../engine/assets/decimal.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type { CreateFiatPayoutRequest } from '../../../generated/schemas.ts';
import type {
  FiatEnvironment,
  FiatProvider,
  FiatRefusal,
  OpenedPayout,
  PayoutOrder,
} from '../../../ports/fiat.ts';
import {
  type OperationContext,
  type PlanContext,
  type Planned,
  unwrapPlan,
} from '../../../ports/operation-context.ts';
import { refusingTerms } from '../../base/actions/action-refusals.ts';
import { authorizeUse } from '../../wallets/wallet-uses/use-wallet.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import type { WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import { providerKey } from '../external-fiat-accounts/check-account.ts';
import type { StoredFiatAccount } from '../external-fiat-accounts/external-fiat-account.entity.ts';
import { getFiatAccount, getFiatAccountForUpdate } from '../external-fiat-accounts/external-fiat-account.ts';
import { requireNetwork, requireWalletEntity } from '../external-fiat-accounts/wallet-asset.ts';
import { type FiatEntity, findProvider, requireCustomer } from '../fiat-customers/find-customer.ts';
import { callChain, insufficientFunds } from '../sending/call-chain.ts';
import { payoutStepId } from '../wallet-actions/due-steps.ts';
import { planSending } from '../wallet-actions/transfer.ts';
import { type PlannedTransfer, transferPlanners } from '../wallet-actions/transfer-planners.ts';
import type { WalletActionRow } from '../wallet-actions/wallet-action.entity.ts';
import { beginWalletAction, requireFreshNonce, sendSteps } from '../wallet-actions/wallet-action.ts';

/**
 * Reads the body of a payout.
 *
 * @throws ApiError invalid_data; not_supported.
 */
function readPayout(wallet: WalletRow, body: CreateFiatPayoutRequest): PayoutTerms {
  if (wallet.custody_provider !== null) {
    throw new ApiError('not_supported', 'the custodian of this wallet takes no payouts from here yet');
  }
  const terms = refusingTerms(() => readPayoutTerms(wallet.chain_type, body));
  const { chain } = terms.asset;
  if (transferPlanners[chain.chainType] !== undefined) return terms;
  throw new ApiError('not_supported', `/source/chain: no payouts on \`${chain.name}\` yet`);
}

/** A payout that the provider has opened, with all chain data for its deposit. */
export interface PayoutPlan {
  readonly account: StoredFiatAccount;
  readonly rail: string;
  readonly opened: OpenedPayout;
  readonly build: PlannedTransfer['build'];
  /** Cancels the payout at the provider, which would otherwise wait for a deposit that never comes. */
  cancel(): void;
}

/** The payment rails of each account type. The first rail is the default. */
const rails: Readonly<Record<string, readonly string[]>> = {
  us: ['ach', 'ach_same_day', 'wire', 'fednow'],
  iban: ['sepa'],
  gb: ['faster_payments'],
  pix: ['pix'],
  swift: ['swift'],
};

/**
 * Returns the payment rail of a payout.
 *
 * @throws ApiError invalid_data for a rail that does not reach the account.
 */
function railOf({ accountType }: StoredFiatAccount, wanted: string | undefined): string {
  const known = rails[accountType] ?? [accountType];
  if (wanted === undefined) return known[0]!;
  if (known.includes(wanted)) return wanted;
  const expected = known.map((rail) => `\`${rail}\``).join(', ');
  throw invalidField(
    '/destination/payment_rail',
    `a bank account of the type \`${accountType}\` is paid by ${expected}, got \`${wanted}\``,
  );
}

/**
 * Opens a payout at the provider, and plans its deposit from the state of the chain. Call it outside any database
 * transaction.
 *
 * @throws ApiError not_found; invalid_data; invalid_state for a user or organization that is not verified;
 * not_supported; insufficient_funds; transaction_execution_failure when the simulation fails;
 * transaction_broadcast_failure when the provider or the chain cannot be reached.
 */
export async function planPayout(
  context: PlanContext,
  walletId: string,
  body: CreateFiatPayoutRequest,
): Promise<PayoutPlan> {
  const wallet = await findWallet(context, walletId);
  const terms = readPayout(wallet, body);
  const { asset, rawAmount } = terms;
  const account = await requireOwnAccount(context, wallet, terms.accountId);
  const rail = railOf(account, body.destination.payment_rail);
  const provider = findProvider(context, placeOf(account));
  requireNetwork(provider, asset.chain, '/source/chain');
  const { customerId } = await requireCustomer(context, customerOf(account));
  const chain = context.chains.find(asset.chain.caip2);
  if (chain === undefined) {
    const what = `the chain \`${asset.chain.name}\` is not configured here`;
    throw new ApiError('not_supported', `/source/chain: ${what}`);
  }
  const [balance = 0n] = await callChain(chain.balances(wallet.address, [asset.tokenAddress]));
  if (balance < rawAmount) {
    const payer = { caip2: asset.chain.caip2, address: wallet.address, tokenAddress: asset.tokenAddress };
    throw insufficientFunds({ ...payer, needed: rawAmount, balance });
  }
  const opened = await open(provider, {
    key: keyOf(context, wallet, body),
    customerId,
    bankAccountId: account.providerAccountId,
    source: {
      caip2: asset.chain.caip2,
      chain: asset.chain.name,
      asset: asset.asset,
      tokenAddress: asset.tokenAddress,
      decimals: asset.decimals,
      address: wallet.address,
    },
    rawAmount,
    rail,
    currency: account.currency,
    developerFeePercent: terms.developerFeePercent,
  });
  const cancel = (): void => cancelAtProvider(context, provider, opened.id);
  const order = { asset, rawAmount, from: wallet.address, to: opened.depositAddress };
  try {
    const { build } = await planSending(context, order);
    return { account, rail, opened, build, cancel };
  } catch (error) {
    cancel();
    throw error;
  }
}

/**
 * Finds the bank account of a payout. It must belong to the user or organization of the wallet.
 *
 * @throws ApiError invalid_data
 */
async function requireOwnAccount(
  context: PlanContext,
  wallet: WalletRow,
  accountId: string,
): Promise<StoredFiatAccount> {
  const entity = await requireWalletEntity(context, wallet).catch((error: unknown) => {
    if (error instanceof ApiError) return undefined;
    throw error;
  });
  const account = entity && (await getFiatAccount(context, entity.id, accountId));
  if (account === undefined) throw unknownAccount();
  return account;
}

/**
 * Returns the error for a bank account that does not exist, or that does not belong to the user or organization of the
 * wallet.
 */
function unknownAccount(): ApiError {
  return invalidField(
    '/destination/fiat_account_id',
    'expected a bank account of the user or organization that the wallet belongs to',
  );
}

function placeOf({ provider, environment }: StoredFiatAccount) {
  return { provider, environment: environment as FiatEnvironment };
}

/** Returns the user or organization of an account, in the form that `requireCustomer` expects. */
function customerOf(account: StoredFiatAccount) {
  const entity = { type: account.entityType as FiatEntity['type'], id: account.entityId };
  return { entity, named: placeOf(account), capability: 'payout_fiat' as const };
}

/**
 * Derives the idempotency key for the provider. A repeated request gets the response of the first one, and the provider
 * opens no second payout.
 */
function keyOf({ app, idempotencyKey, requestId }: PlanContext, wallet: WalletRow, body: object): string {
  return providerKey('payout', app.id, wallet.id, idempotencyKey ?? null, idempotencyKey ?? requestId, body);
}

async function open(provider: FiatProvider, order: PayoutOrder): Promise<OpenedPayout> {
  const answer = await provider.openPayout(order).catch((cause: unknown) => {
    throw unreachable(cause);
  });
  if ('fault' in answer) throw refusalOf(answer);
  // INVARIANT: only the amount that the policies evaluate is ever signed.
  if (answer.rawAmount !== order.rawAmount) {
    throw invalidField('/source/amount', 'the provider cannot pay out exactly this amount');
  }
  return answer;
}

function unreachable(cause: unknown): ApiError {
  const message = 'the provider could not be reached; nothing was signed or sent';
  return new ApiError('transaction_broadcast_failure', message, { cause });
}

function refusalOf({ fault, pointer, message }: FiatRefusal): ApiError {
  if (fault === 'pair') return new ApiError('not_supported', `${pointer ?? '/source'}: ${message}`);
  if (fault === 'customer') return new ApiError('invalid_state', message);
  return invalidField(pointer ?? '/source/amount', message);
}

/**
 * Starts a cancellation without waiting for it. The request has already been refused, and a payout without a deposit
 * expires anyway.
 *
 * NOTE: with an idempotency key, the request may be repeated and use the same payout. That payout is therefore left to
 * expire.
 */
function cancelAtProvider(
  { log, idempotencyKey }: PlanContext,
  provider: FiatProvider,
  payoutId: string,
): void {
  if (idempotencyKey !== undefined) return;
  provider.cancelPayout(payoutId).catch((err: unknown) => {
    log.warn(
      { err, payout: payoutId },
      'failed to cancel a refused payout at the provider, where it stays open',
    );
  });
}

/**
 * The minimum number of seconds before a payout expires. With less time, a block might include its deposit too late, so
 * nothing is signed.
 */
const MIN_SECONDS = 60;

interface PayoutInput {
  readonly walletId: string;
  readonly body: CreateFiatPayoutRequest;
  /** The result of `planPayout`. */
  readonly planned: Planned<PayoutPlan>;
}

/**
 * Pays out to a bank account. The deposit to the provider is signed and stored together with the action in one
 * database transaction, and broadcast after the commit. A crash therefore neither loses nor repeats it. Once the
 * provider has the deposit, it pays the bank or refunds the deposit.
 *
 * @throws ApiError not_found; policy_violation; resource_conflict for a nonce that this wallet has already used; what
 * `requireAuthorization` and `planPayout` throw.
 */
export async function createFiatPayout(
  context: OperationContext,
  input: PayoutInput,
): Promise<WalletActionRow> {
  try {
    return await payOut(context, input);
  } catch (error) {
    // Other errors concern the database transaction, which runs again with the same payout.
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
    async prepare() {
      const terms = readPayout(wallet, body);
      return { action: payoutAction(body, terms), terms };
    },
    allowsSigners: true,
  });
  await requireFreshNonce(context, wallet.id, body.nonce);
  await use.recordOrDeny();
  const plan = unwrapPlan(planned);
  await requireStillPayable(context, plan);
  const sent = await sendSteps(context, wallet, {
    type: 'payout',
    builds: [plan.build],
    authorization: use.authorization,
  });
  return beginWalletAction(context, wallet.id, {
    type: 'payout',
    nonce: body.nonce,
    referenceId: undefined,
    details: detailsOf(body, use.prepared.terms, plan),
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

/**
 * Checks again that the account exists, that its owner is verified, and that the provider's terms are valid long
 * enough. Locks the account, so that a concurrent removal waits.
 */
async function requireStillPayable(
  context: OperationContext,
  { account, opened }: PayoutPlan,
): Promise<void> {
  const locked = await getFiatAccountForUpdate(context, account.entityId, account.id);
  if (locked === undefined) throw unknownAccount();
  await requireCustomer(context, customerOf(locked));
  if (opened.expiresAtSeconds - Math.floor(context.nowMs / 1000) < MIN_SECONDS) {
    const message = 'the terms of the provider have expired; nothing was signed or sent';
    throw new ApiError('transaction_broadcast_failure', message);
  }
}

/** Returns the wire fields that describe the request, for responses and events. */
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
