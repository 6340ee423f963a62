import type { FiatEnvironment, FiatPayout, FiatProviders } from '../../../ports/fiat.ts';
import type { Services } from '../../../ports/operation-context.ts';
import type { DueExternalStep, ExternalProgress, StepSystem } from './due-steps.ts';
import type { ExternalKind } from './wallet-action-steps.ts';

/** Polls the other system about an external step. Safe to repeat. Rejects when the system cannot be reached. */
type AskAboutStep = (step: DueExternalStep) => Promise<ExternalProgress>;

/**
 * Maps each kind of external step to the function that polls its system. Steps of a kind without an entry stay
 * `pending`.
 */
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

/**
 * The id of a payout as an external step. It contains the provider and the environment, because ids of different
 * providers can be equal.
 */
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

/** The system that carries out a step. */
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

/** A payment that the bank returned is open until the provider has refunded the deposit. */
function progressOf({ state, refund, reason }: FiatPayout): ExternalProgress {
  if (state === 'payment_processed') return { kind: 'done' };
  if (state === 'refunded') {
    const why = reason ?? 'the payment was refunded';
    // Some providers do not report the transaction of the refund.
    return refund === undefined
      ? { kind: 'refused', reason: why }
      : { kind: 'given_back', hash: refund.transactionHash, reason: why };
  }
  if (state === 'error') return { kind: 'refused', reason: reason ?? 'the payment failed' };
  if (state === 'canceled') return { kind: 'refused', reason: reason ?? 'the payout was canceled' };
  return { kind: 'waiting' };
}
