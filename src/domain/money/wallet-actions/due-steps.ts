import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Kysely } from 'kysely';
import type { TransactionMovements } from '../../../ports/chains.ts';
import type { FiatEnvironment, FiatPayout, FiatProviders } from '../../../ports/fiat.ts';
import type { Services, UnitContext } from '../../../ports/operation-context.ts';
import { noteChange } from '../../base/events/events.ts';
import { type Claimant, claimedUntil } from '../../base/processes/server-processes.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import { WalletActionStepEntity } from './wallet-action.entity.ts';
import type { ExternalKind } from './wallet-action-steps.ts';

// KYSELY: claims join steps with their transactions and actions, and lock only the steps.

/** CHOICE: the interval at which a waiting external step is polled. */
const POLL_MS = 2000;
/** How long a claim of a step lasts. */
const LEASE_MS = 60_000;

/** States of a transaction that is in a block and took effect. */
export const includedStatuses = ['confirmed', 'finalized'] as const;

interface DueStep {
  readonly appId: string;
  readonly actionId: string;
  readonly position: number;
}

/** A step that another system carries out, and whose deposit has arrived. */
export interface DueExternalStep extends DueStep {
  readonly kind: ExternalKind;
  readonly externalId: string;
  readonly depositHash: string;
}

/** A system that carries out external steps, with the kind of its steps and the prefix of their ids. */
export interface StepSystem {
  readonly kind: ExternalKind;
  readonly idsFrom: string;
}

interface WantedSteps {
  /** The busy systems, whose steps are not claimed. */
  readonly busy: readonly StepSystem[];
  readonly limit: number;
}

/** The progress of an external step, as the other system reports it. */
export type ExternalProgress =
  /** The other system waits for the deposit to be included, or has not paid yet. */
  | { readonly kind: 'waiting' }
  /**
   * The other system has paid. `hash` is the hash of the payment, if it is on a chain. `delivery` replaces the delivery
   * that was expected when the step was stored.
   */
  | { readonly kind: 'done'; readonly hash?: string | undefined; readonly delivery?: object | undefined }
  /** The deposit was refunded. `hash` is the hash of the refund on the chain of the deposit. */
  | { readonly kind: 'given_back'; readonly hash: string; readonly reason: string }
  /** The step ended without the payment, and no transaction of a refund is known. */
  | { readonly kind: 'refused'; readonly reason: string };

/**
 * Claims external steps of the given kinds that are due for polling, most overdue first, by moving their next check.
 * Until then, no other process claims them. The claim of a dead process is released or expires.
 */
export async function claimDueExternalSteps(
  em: SqlEntityManager,
  { owner, nowMs }: Claimant,
  { kinds, busy, limit }: { readonly kinds: readonly ExternalKind[] } & WantedSteps,
): Promise<readonly DueExternalStep[]> {
  if (kinds.length === 0) return [];
  const due = await em
    .getKysely<Tables>()
    .selectFrom('wallet_action_steps as steps')
    .innerJoin('wallet_action_steps as deposits', (join) =>
      join
        .onRef('deposits.action_id', '=', 'steps.action_id')
        .on((on) => on('deposits.position', '=', on('steps.position', '-', on.lit(1)))),
    )
    .innerJoin('transactions', 'transactions.id', 'deposits.transaction_id')
    .innerJoin('wallet_actions', 'wallet_actions.id', 'steps.action_id')
    .select([
      'wallet_actions.app_id as appId',
      'steps.action_id as actionId',
      'steps.position',
      'steps.external_kind as kind',
      'steps.external_id as externalId',
      'transactions.transaction_hash as depositHash',
    ])
    .where('steps.next_check_at_ms', '<=', nowMs)
    .where('steps.external_status', '=', 'waiting')
    .where('steps.external_kind', 'in', kinds)
    .where('transactions.status', 'in', includedStatuses)
    .where(({ and, not, eb }) =>
      and(
        busy.map(({ kind, idsFrom }) =>
          not(and([eb('steps.external_kind', '=', kind), eb('steps.external_id', 'like', `${idsFrom}%`)])),
        ),
      ),
    )
    .orderBy('steps.next_check_at_ms')
    .orderBy('steps.action_id')
    .limit(limit)
    .$castTo<DueExternalStep>()
    .forUpdate('steps')
    .skipLocked()
    .execute();
  for (const step of due) await putOff(em, step, { untilMs: nowMs + LEASE_MS, claimedBy: owner });
  return due;
}

/**
 * Stores the progress of an external step. Returns whether this ended the step.
 *
 * INVARIANT: an outcome is stored once and never overwritten.
 */
export async function advanceExternalStep(
  { em, notes }: UnitContext,
  step: DueExternalStep,
  { progress, nowMs }: { progress: ExternalProgress; nowMs: number },
): Promise<boolean> {
  if (progress.kind === 'waiting') {
    await putOff(em, step, { untilMs: nowMs + POLL_MS, claimedBy: null });
    return false;
  }
  const advanced = await em.nativeUpdate(
    WalletActionStepEntity,
    { actionId: step.actionId, position: step.position, externalStatus: 'waiting' },
    {
      externalStatus: progress.kind,
      hash: 'hash' in progress ? (progress.hash ?? null) : null,
      failureReason: 'reason' in progress ? progress.reason : null,
      nextCheckAtMs: null,
      ...('delivery' in progress && progress.delivery !== undefined
        ? { delivery: JSON.stringify(progress.delivery) }
        : {}),
    },
  );
  if (advanced !== 1) return false;
  noteChange(notes, {
    appId: step.appId,
    what: `wallet_action.external_step_${progress.kind}`,
    id: step.actionId,
  });
  return true;
}

/** A step whose transaction is in a block, but whose effects have not been read. */
export interface UnreadStep extends DueStep {
  readonly caip2: string;
  readonly hash: string;
}

const unreadOf = (database: Kysely<Tables>, { nowMs, limit }: { nowMs: number; limit: number }) =>
  database
    .selectFrom('wallet_action_steps as steps')
    .innerJoin('transactions', 'transactions.id', 'steps.transaction_id')
    .innerJoin('wallet_actions', 'wallet_actions.id', 'steps.action_id')
    .select([
      'wallet_actions.app_id as appId',
      'steps.action_id as actionId',
      'steps.position',
      'transactions.caip2',
      'transactions.transaction_hash as hash',
    ])
    .where('steps.next_check_at_ms', '<=', nowMs)
    .where('transactions.status', 'in', includedStatuses)
    .where((where) =>
      where('steps.effects_block_number', 'is distinct from', where.ref('transactions.block_number')),
    )
    .orderBy('steps.next_check_at_ms')
    .orderBy('steps.action_id')
    .limit(limit)
    .$castTo<UnreadStep>()
    .forUpdate('steps')
    .skipLocked();

const selectUnread = prepareQuery(unreadOf);

/**
 * Claims steps whose effects must be read, in the same way as `claimDueExternalSteps`.
 *
 * @param busy CAIP-2 ids of busy chains, whose steps are not claimed.
 */
export async function claimUnreadSteps(
  em: SqlEntityManager,
  { owner, nowMs }: Claimant,
  { busy, limit }: { readonly busy: readonly string[]; readonly limit: number },
): Promise<readonly UnreadStep[]> {
  const wanted = { nowMs, limit };
  const due =
    busy.length === 0
      ? (await selectUnread(em, wanted)).rows
      : await unreadOf(em.getKysely<Tables>(), wanted).where('transactions.caip2', 'not in', busy).execute();
  for (const step of due) await putOff(em, step, { untilMs: nowMs + LEASE_MS, claimedBy: owner });
  return due;
}

/**
 * Stores the movements of a step's transaction, and the block from which they were read. If a reorganization moves the
 * transaction to another block before the action ends, they are read again.
 */
export async function storeEffects(
  { em, notes }: UnitContext,
  { appId, actionId, position }: UnreadStep,
  { found, nowMs }: { found: TransactionMovements | undefined; nowMs: number },
): Promise<void> {
  const effects = found?.movements.map((moved) => ({ ...moved, rawAmount: String(moved.rawAmount) }));
  await em.nativeUpdate(
    WalletActionStepEntity,
    { actionId, position, nextCheckAtMs: { $ne: null } },
    {
      ...(found === undefined
        ? {}
        : { effects: JSON.stringify(effects), effectsBlockNumber: Number(found.blockNumber) }),
      nextCheckAtMs: nowMs,
    },
  );
  if (found !== undefined) noteChange(notes, { appId, what: 'wallet_action.effects_read', id: actionId });
}

/** Returns the external id of an action's payout; undefined for actions without a payout and for unknown actions. */
export async function getPayoutOfAction(em: SqlEntityManager, actionId: string): Promise<string | undefined> {
  const payout = { actionId, externalKind: 'payout' };
  const row = await em.findOne(WalletActionStepEntity, payout, { disableIdentityMap: true });
  return row?.externalId ?? undefined;
}

export async function checkStepsNow(em: SqlEntityManager, actionId: string, nowMs: number): Promise<void> {
  await em.nativeUpdate(
    WalletActionStepEntity,
    { actionId, nextCheckAtMs: { $gt: nowMs } },
    { nextCheckAtMs: nowMs },
  );
}

export async function stopChecks(em: SqlEntityManager, actionId: string): Promise<void> {
  await em.nativeUpdate(
    WalletActionStepEntity,
    { actionId, nextCheckAtMs: { $ne: null } },
    { nextCheckAtMs: null },
  );
}

/** Makes the steps that a dead process had claimed due again. */
export async function releaseStepsOf(em: SqlEntityManager, dead: Claimant): Promise<void> {
  await em.nativeUpdate(
    WalletActionStepEntity,
    { claimedBy: dead.owner, nextCheckAtMs: claimedUntil(dead) },
    { nextCheckAtMs: dead.nowMs },
  );
}

async function putOff(
  em: SqlEntityManager,
  { actionId, position }: DueStep,
  { untilMs, claimedBy }: { readonly untilMs: number; readonly claimedBy: string | null },
): Promise<void> {
  await em.nativeUpdate(
    WalletActionStepEntity,
    { actionId, position, nextCheckAtMs: { $ne: null } },
    { nextCheckAtMs: untilMs, claimedBy },
  );
}

/** Polls the other system about an external step. Safe to repeat. Rejects when the system cannot be reached. */
type AskAboutStep = (step: DueExternalStep) => Promise<ExternalProgress>;

/**
 * Returns the functions that poll the systems of external steps, by the kind of the step. Steps of a kind without a
 * function stay `pending`.
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

/**
 * Returns a function that polls the exchange about a step. Polling is safe to repeat, because the exchange pays a quote
 * only once.
 */
function askExchangeAbout(exchange: NonNullable<Services['exchange']>): AskAboutStep {
  return async ({ externalId, depositHash }) => {
    const status = await exchange.statusOf(externalId, depositHash);
    if (status.kind === 'waiting') return status;
    if (status.kind === 'paid') return { kind: 'done', hash: status.hash };
    return { kind: 'given_back', hash: status.hash, reason: status.reason };
  };
}

/**
 * Returns the id of a payout as an external step. It contains the provider and the environment, because ids of
 * different providers can be equal.
 */
export function payoutStepId(payout: {
  readonly provider: string;
  readonly environment: string;
  readonly id: string;
}): string {
  return [payout.provider, payout.environment, payout.id].join(':');
}

export function payoutOfStep(externalId: string): {
  provider: string;
  environment: FiatEnvironment;
  id: string;
} {
  const [provider = '', environment = '', ...id] = externalId.split(':');
  return { provider, environment: environment as FiatEnvironment, id: id.join(':') };
}

/** Returns the system that carries out a step. */
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

/**
 * Converts a payout to the progress of its step. A payment that the bank returned is open until the provider has
 * refunded the deposit.
 */
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
