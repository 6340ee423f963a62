import { ApiError } from '../../../errors.ts';
import type { WalletActionType } from '../../../generated/schemas.ts';
import type { FiatEnvironment, FiatPayout, FiatProviders } from '../../../ports/fiat.ts';
import type { OperationContext, Services } from '../../../ports/operation-context.ts';
import type { WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import { type BuildTransaction, type BuiltTransaction, sendInOrder } from '../sending/broadcast.ts';
import type { DueExternalStep, ExternalProgress, StepSystem } from './due-steps.ts';
import type { NewTransactionStep } from './wallet-action.ts';
import type { ExternalKind } from './wallet-action-steps.ts';

/** Asks about an external step. Safe to call repeatedly; rejects when the system cannot be reached. */
type AskAboutStep = (step: DueExternalStep) => Promise<ExternalProgress>;

/** The system that does the external steps of each kind. Steps of a kind without an entry stay `pending`. */
export function externalSteps({
  exchange,
  fiatProviders,
}: Pick<Services, 'exchange' | 'fiatProviders'>): Partial<Readonly<Record<ExternalKind, AskAboutStep>>> {
  return {
    ...(exchange === undefined ? {} : { exchange: askExchangeAbout(exchange) }),
    payout: askProvidersAbout(fiatProviders),
  };
}

/** The exchange pays a quote only once. */
function askExchangeAbout(exchange: NonNullable<Services['exchange']>): AskAboutStep {
  return async ({ externalId, depositHash }) => {
    const status = await exchange.statusOf(externalId, depositHash);
    if (status.kind === 'waiting') return status;
    if (status.kind === 'paid') return { kind: 'done', hash: status.hash };
    return { kind: 'given_back', hash: status.hash, reason: status.reason };
  };
}

/** A payout as the id of an external step: ids of different providers and environments may be equal. */
export function payoutStepId(payout: {
  readonly provider: string;
  readonly environment: string;
  readonly id: string;
}): string {
  return [payout.provider, payout.environment, payout.id].join(':');
}

/** The payout that an external step refers to. */
export function payoutOfStep(externalId: string): {
  provider: string;
  environment: FiatEnvironment;
  id: string;
} {
  const [provider = '', environment = '', ...id] = externalId.split(':');
  return { provider, environment: environment as FiatEnvironment, id: id.join(':') };
}

/** The system that does a step. */
export function systemOfStep({ kind, externalId }: DueExternalStep): StepSystem {
  if (kind !== 'payout') return { kind, idsFrom: '' };
  const { provider, environment } = payoutOfStep(externalId);
  return { kind, idsFrom: payoutStepId({ provider, environment, id: '' }) };
}

function askProvidersAbout(fiatProviders: FiatProviders): AskAboutStep {
  return async ({ externalId }) => {
    const { provider, environment, id } = payoutOfStep(externalId);
    const payout = await fiatProviders.find(provider, environment)?.payout(id);
    return payout === undefined ? { kind: 'waiting' } : progressOf(payout);
  };
}

/** A payment that comes back is not over before the deposit is paid back. */
function progressOf({ state, refund, reason }: FiatPayout): ExternalProgress {
  if (state === 'payment_processed') return { kind: 'done' };
  if (state === 'refunded') {
    const why = reason ?? 'the payment was refunded';
    // Not every provider names the transaction of the refund.
    return refund === undefined
      ? { kind: 'refused', reason: why }
      : { kind: 'given_back', hash: refund.transactionHash, reason: why };
  }
  if (state === 'error') return { kind: 'refused', reason: reason ?? 'the payment failed' };
  if (state === 'canceled') return { kind: 'refused', reason: reason ?? 'the payout was canceled' };
  return { kind: 'waiting' };
}

interface StepsToSend {
  readonly type: WalletActionType;
  readonly referenceId?: string | undefined;
  /** Each builds one transaction, in the order in which they take effect. */
  readonly builds: readonly BuildTransaction[];
  readonly readsEffects?: boolean | undefined;
}

/**
 * Signs and stores all transactions of an action in the transaction of the request, and schedules their broadcast for
 * after the commit, in order. The caller has authorized the action, and passes the result to `beginWalletAction` in
 * the same transaction: nothing is signed later, without the request.
 */
export async function sendSteps(
  context: OperationContext,
  wallet: WalletRow,
  { type, referenceId, builds, readsEffects }: StepsToSend,
): Promise<NewTransactionStep[]> {
  const sent = await sendInOrder(afterCommitContext(context), wallet, builds, { method: type, referenceId });
  return sent.map(({ built, transactionId }) => ({
    type: stepType(wallet, built),
    transactionId,
    readsEffects,
  }));
}

/**
 * The context for work after the commit: the action exists by then, so a refusal by the chain ends the action as
 * `rejected` and does not become the response.
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

function stepType(wallet: WalletRow, { sponsorship }: BuiltTransaction): string {
  if (sponsorship === 'operation') return 'evm_user_operation';
  return stepTypes[wallet.chain_type] ?? 'external_transaction';
}
