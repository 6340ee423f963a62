import type { SqlEntityManager } from '@mikro-orm/sql';
import { ApiError, invalidField } from '../../../errors.ts';
import type { Card, ReplaceCardRequest, UpdateCardRequest } from '../../../generated/schemas.ts';
import type { CardEnvironment, CardIssuer, CardStatus, IssuedCard } from '../../../ports/cards.ts';
import {
  type OperationContext,
  type PlanContext,
  type Planned,
  type Services,
  type UnitContext,
  unwrapPlan,
} from '../../../ports/operation-context.ts';
import { lockForUpdate, lockUnlocked } from '../../../storage/locks.ts';
import { getUser, lockUser } from '../../access/user-records/find-user.ts';
import { noteChange } from '../../base/events/events.ts';
import { findWalletForUpdate } from '../../wallets/wallets/find-wallet.ts';
import { CardEntity, type StoredCard } from './card.entity.ts';
import {
  balancesOf,
  type CardBalances,
  cardView,
  findCard,
  findOwnWallet,
  lockCardUser,
  requireUsable,
  storeIssued,
} from './card.ts';
import { askIssuer, findIssuer, lookAtCustomer, requireCardUser, requireReady } from './card-customer.ts';

/** A card after the issuer changed it, before the transaction of the request. */
export interface ChangedCard {
  readonly reported: IssuedCard;
  readonly balances: CardBalances;
}

/** A card after the issuer replaced it, before the transaction of the request. */
export interface ReplacedCard extends ChangedCard {
  readonly successor: IssuedCard;
}

/**
 * Changes a card at the issuer. Safe to repeat.
 *
 * @throws ApiError missing_or_invalid_token, not_found, invalid_data, invalid_state, not_supported, unavailable
 */
export async function askToChange(
  context: PlanContext,
  cardId: string,
  body: UpdateCardRequest,
): Promise<ChangedCard> {
  const { environment, status, cancellation_reason: reason, pin } = body;
  const { issuer, card } = await findWithIssuer(context, cardId, environment);
  checkChange(body);
  requireUsable(card);
  // CHOICE: a user who can no longer get cards cannot unfreeze one either.
  if (status === 'active' && card.status === 'inactive') {
    await requireReady(context, environment, await lookAtCustomer(context, environment));
  }
  const change = { status, reason, encryptedPin: pin?.encrypted_number };
  const reported = await askIssuer(() => issuer.change(card.issuerCardId, change));
  if ('fault' in reported) {
    if (reported.fault === 'state') throw new ApiError('invalid_state', reported.message);
    throw invalidField('/pin/encrypted_number', reported.message);
  }
  return { reported, balances: await balancesOf(context, [card]) };
}

function checkChange({ status, cancellation_reason: reason, pin }: UpdateCardRequest): void {
  if (status === undefined && pin === undefined) throw invalidField('', 'expected `status` or `pin`');
  if (reason !== undefined && status !== 'canceled') {
    throw invalidField('/cancellation_reason', 'expected it with the status `canceled` only');
  }
  if (status === 'canceled' && pin !== undefined) {
    throw invalidField('/pin', 'expected no PIN for a card that is canceled');
  }
}

/**
 * Stores the card as the issuer changed it.
 *
 * @throws ApiError not_found; what `askToChange` throws.
 */
export async function updateCard(
  context: OperationContext,
  cardId: string,
  body: UpdateCardRequest,
  planned: Planned<ChangedCard>,
): Promise<Card> {
  const { reported, balances } = unwrapPlan(planned);
  const { isFrozen } = await lockUser(context, requireCardUser(context));
  const card = await findCard(context, cardId, body.environment, { isLocked: true });
  if (body.cancellation_reason !== undefined) card.cancellationReason ??= body.cancellation_reason;
  storeReport(card, reported);
  // The issuer may have received this change after it was told that the user is frozen, so report the freeze again.
  if (isFrozen) card.nextCheckAtMs = context.nowMs;
  await context.em.flush();
  return cardView(card, balances);
}

/** Stores the issuer's report unless a newer one is stored. A stored cancellation is final. */
export function storeReport(card: StoredCard, { status, revision }: IssuedCard): void {
  if (revision <= card.revision) return;
  card.revision = revision;
  if (card.status !== 'canceled') card.status = status;
}

/**
 * Replaces a card at the issuer. Safe to repeat, because a card has only one successor.
 *
 * @throws ApiError missing_or_invalid_token, not_found, invalid_state, not_supported, unavailable
 */
export async function askToReplace(
  context: PlanContext,
  cardId: string,
  { environment, replacement_reason: reason }: ReplaceCardRequest,
): Promise<ReplacedCard> {
  const { issuer, card } = await findWithIssuer(context, cardId, environment);
  requireNoSuccessor(card);
  await findOwnWallet(context, card.walletId);
  await requireReady(context, environment, await lookAtCustomer(context, environment));
  const { old, successor } = await askIssuer(() => issuer.replace(card.issuerCardId, reason));
  return { reported: old, successor, balances: await balancesOf(context, [card]) };
}

/**
 * Stores the new card and cancels the old one.
 *
 * @throws ApiError not_found; invalid_state; what `askToReplace` throws.
 */
export async function replaceCard(
  context: OperationContext,
  cardId: string,
  { environment, replacement_reason: reason }: ReplaceCardRequest,
  planned: Planned<ReplacedCard>,
): Promise<Card> {
  const { reported, successor, balances } = unwrapPlan(planned);
  await lockCardUser(context, requireCardUser(context));
  const old = await findCard(context, cardId, environment, { isLocked: true });
  requireNoSuccessor(old);
  // INVARIANT: the wallet is locked, so a change of its owner comes before or after the new card is stored. A change
  // afterwards also cancels the new card.
  await findWalletForUpdate(context, old.walletId);
  await findOwnWallet(context, old.walletId);
  const { appId, userId, walletId, caip2, asset } = old;
  const card = storeIssued(context, successor, { appId, userId, environment, walletId, caip2, asset });
  old.replacedById = card.id;
  if (reason !== 'expired') old.cancellationReason ??= reason;
  storeReport(old, reported);
  await context.em.flush();
  return cardView(card, balances);
}

async function findWithIssuer(
  context: PlanContext,
  cardId: string,
  environment: CardEnvironment,
): Promise<{ readonly issuer: CardIssuer; readonly card: StoredCard }> {
  const card = await findCard(context, cardId, environment);
  return { issuer: findIssuer(context, environment), card };
}

function requireNoSuccessor({ replacedById }: StoredCard): void {
  if (replacedById !== null) throw new ApiError('invalid_state', 'the card was replaced before');
}

/** How long a claim of a card lasts. */
const LEASE_MS = 10_000;
/**
 * How often a freeze is reported, and for how long. A request that began before the freeze may change the card at the
 * issuer after the freeze, and its process may die before it stores the change. So the report is repeated until no such
 * request can still be running.
 */
const FREEZE_REPORTS = { everyMs: 60_000, forMs: 600_000 };

/** A card whose status must be reported to the issuer. */
export interface DueCard {
  readonly card: StoredCard;
  readonly status: CardStatus;
  /** When to report the status again; null if one report is enough. */
  readonly againAtMs: number | null;
}

/**
 * Claims cards with changes to report, most overdue first. The claim of a dead process expires.
 *
 * @param busy the busy environments, whose cards are not claimed.
 */
export async function claimDueCards(
  em: SqlEntityManager,
  nowMs: number,
  { busy, limit }: { readonly busy: readonly string[]; readonly limit: number },
): Promise<readonly DueCard[]> {
  const cards = await em.find(
    CardEntity,
    { nextCheckAtMs: { $lte: nowMs }, environment: { $nin: [...busy] } },
    { orderBy: { nextCheckAtMs: 'asc', id: 'asc' }, limit, ...lockUnlocked },
  );
  const due: DueCard[] = [];
  for (const card of cards) {
    card.nextCheckAtMs = nowMs + LEASE_MS;
    due.push({ card, ...(await reportFor(em, card, nowMs)) });
  }
  await em.flush();
  return due;
}

/**
 * Returns the status to report to the issuer of a card, and when to report it again.
 *
 * CHOICE: while a user is frozen, the user's cards are reported as inactive.
 */
async function reportFor(
  em: SqlEntityManager,
  card: StoredCard,
  nowMs: number,
): Promise<Omit<DueCard, 'card'>> {
  const user =
    card.status === 'canceled' ? undefined : await getUser({ em, app: { id: card.appId } }, card.userId);
  // A cancellation is final at the issuer, so one report is enough.
  if (user === undefined) return { status: 'canceled', againAtMs: null };
  const frozenAtMs = user.row.frozen_at_ms;
  if (frozenAtMs === null) return { status: card.status as CardStatus, againAtMs: null };
  const isRecent = nowMs < frozenAtMs + FREEZE_REPORTS.forMs;
  return { status: 'inactive', againAtMs: isRecent ? nowMs + FREEZE_REPORTS.everyMs : null };
}

/**
 * Reports the status to the issuer. Returns undefined if the issuer is not configured or refuses it. Call it outside
 * any transaction.
 */
export async function reportToIssuer(
  { cardIssuers }: Pick<Services, 'cardIssuers'>,
  { card, status }: DueCard,
): Promise<IssuedCard | undefined> {
  const issuer = cardIssuers.find(card.environment as CardEnvironment);
  const reported = await issuer?.change(card.issuerCardId, { status });
  return reported === undefined || 'fault' in reported ? undefined : reported;
}

/** Marks the card as reported. The next report is due at `againAtMs`, unless the card has changed in the meantime. */
export async function settleCard(
  { em, notes }: UnitContext,
  { card: { id, nextCheckAtMs }, status, againAtMs }: DueCard,
  { revision }: IssuedCard,
): Promise<void> {
  const card = await em.findOne(CardEntity, { id }, lockForUpdate);
  if (card === null) return;
  card.revision = Math.max(card.revision, revision);
  if (status === 'canceled') card.status = 'canceled';
  if (card.nextCheckAtMs === nextCheckAtMs) card.nextCheckAtMs = againAtMs;
  noteChange(notes, { appId: card.appId, what: `card.reported_${status}`, id });
  await em.flush();
}
