import { ApiError, invalidField } from '../../../errors.ts';
import type { Card, ReplaceCardRequest, UpdateCardRequest } from '../../../generated/schemas.ts';
import type { OperationContext, PlanContext } from '../../../operation-context.ts';
import { type Planned, unwrapPlan } from '../../../planned.ts';
import type { CardEnvironment, CardIssuer, IssuedCard } from '../../../ports/card-issuers.ts';
import { lockUser } from '../../access/user-records/find-user.ts';
import { findWalletForUpdate } from '../../wallets/wallets/find-wallet.ts';
import type { StoredCard } from './card.entity.ts';
import { lookAtCustomer, requireReady } from './card-customer.ts';
import { balancesOf, type CardBalances, cardView } from './card-view.ts';
import { findOwnWallet } from './card-wallet.ts';
import { findCard, requireUsable } from './find-card.ts';
import { askIssuer, findIssuer } from './find-issuer.ts';
import { storeIssued } from './issue-card.ts';

/** A card that the issuer has changed, before the transaction of the request. */
export interface ChangedCard {
  readonly reported: IssuedCard;
  readonly balances: CardBalances;
}

/** A card that the issuer has replaced. */
export interface ReplacedCard extends ChangedCard {
  readonly successor: IssuedCard;
}

/**
 * Has the issuer change a card. Safe to repeat.
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
  // CHOICE: who can no longer have cards cannot unfreeze one either.
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
 * Stores what the issuer has changed.
 *
 * @throws ApiError not_found
 */
export async function updateCard(
  context: OperationContext,
  cardId: string,
  body: UpdateCardRequest,
  planned: Planned<ChangedCard>,
): Promise<Card> {
  const { reported, balances } = unwrapPlan(planned);
  const card = await findCard(context, cardId, body.environment, { isLocked: true });
  if (body.cancellation_reason !== undefined) card.cancellationReason ??= body.cancellation_reason;
  storeReport(card, reported);
  await context.em.flush();
  return cardView(card, balances);
}

/** Stores what the issuer says, unless it said something newer before; a cancellation is final. */
export function storeReport(card: StoredCard, { status, revision }: IssuedCard): void {
  if (revision <= card.revision) return;
  card.revision = revision;
  if (card.status !== 'canceled') card.status = status;
}

/**
 * Has the issuer replace a card. Safe to repeat: a card has one successor.
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
 * Stores the new card, and the end of the old one.
 *
 * @throws ApiError not_found, invalid_state
 */
export async function replaceCard(
  context: OperationContext,
  cardId: string,
  { environment, replacement_reason: reason }: ReplaceCardRequest,
  planned: Planned<ReplacedCard>,
): Promise<Card> {
  const { reported, successor, balances } = unwrapPlan(planned);
  const old = await findCard(context, cardId, environment, { isLocked: true });
  requireNoSuccessor(old);
  await lockUser(context, old.userId);
  // INVARIANT: locked, so that the new card is there when the wallet changes its owner, and ends then.
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
