import type { Services } from '../../../operation-context.ts';
import type { DueExternalStep, ExternalProgress } from './due-steps.ts';
import type { ExternalKind } from './wallet-action-steps.ts';

/** Asks about an external step. Safe to call repeatedly; rejects when the system cannot be reached. */
export type AskAboutStep = (step: DueExternalStep) => Promise<ExternalProgress>;

/** The system that does the external steps of each kind. Steps of a kind without an entry stay `pending`. */
export function externalSteps({
  exchange,
}: Pick<Services, 'exchange'>): Partial<Readonly<Record<ExternalKind, AskAboutStep>>> {
  return {
    ...(exchange === undefined ? {} : { exchange: askExchangeAbout(exchange) }),
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
