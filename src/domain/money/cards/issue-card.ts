import { ApiError } from '../../../errors.ts';
import type { Card, CreateCardRequest } from '../../../generated/schemas.ts';
import type { OperationContext, PlanContext } from '../../../operation-context.ts';
import { type Planned, unwrapPlan } from '../../../planned.ts';
import type { IssuedCard } from '../../../ports/card-issuers.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { lockUser } from '../../access/user-records/find-user.ts';
import { findWalletForUpdate } from '../../wallets/wallets/find-wallet.ts';
import { providerKey } from '../fiat-accounts/account-identity.ts';
import { CardEntity, type StoredCard } from './card.entity.ts';
import { getAccepted, type LookedAtCustomer, lookAtCustomer, requireReady } from './card-customer.ts';
import { balancesOf, type CardBalances, cardView } from './card-view.ts';
import { findOwnWallet, requireCardAsset } from './card-wallet.ts';
import { ownCards } from './find-card.ts';
import { askIssuer, findIssuer, requireCardUser } from './find-issuer.ts';

/** CHOICE: how many cards that are not canceled a user can have in an environment. */
const MAX_CARDS = 10;

/** A card as the issuer issued it, before the transaction of the request. */
export interface IssuedForRequest {
  readonly customer: LookedAtCustomer;
  readonly issued: IssuedCard;
  readonly balances: CardBalances;
}

/**
 * Checks everything, and has the issuer issue the card.
 *
 * CHOICE: a repeated idempotency key of the user is the same card at the issuer; without one, each request is its own.
 *
 * @throws ApiError missing_or_invalid_token, not_found, invalid_state, invalid_request, not_supported, unavailable
 */
export async function askForCard(context: PlanContext, body: CreateCardRequest): Promise<IssuedForRequest> {
  const userId = requireCardUser(context);
  const { environment, chain_id: caip2, asset } = body;
  const issuer = findIssuer(context, environment);
  const wallet = await findOwnWallet(context, body.wallet_id);
  const { tokenAddress, decimals } = requireCardAsset(issuer, wallet, body);
  const customer = await lookAtCustomer(context, environment);
  const { customerId } = await requireReady(context, environment, customer);
  await requireRoom(context, body);
  const attempt = context.idempotencyKey ?? context.requestId;
  const answer = await askIssuer(() =>
    issuer.issue({
      key: providerKey('card', context.app.id, userId, environment, wallet.id, caip2, asset, attempt),
      ...{ customerId, caip2, tokenAddress, decimals, address: wallet.address },
    }),
  );
  if ('fault' in answer) throw new ApiError('not_supported', `/chain_id: ${answer.message}`);
  const balances = await balancesOf(context, [{ walletId: wallet.id, caip2, asset }]);
  return { customer, issued: answer, balances };
}

/**
 * Stores the issued card.
 *
 * @throws ApiError as `askForCard`, for what has changed since.
 */
export async function createCard(
  context: OperationContext,
  body: CreateCardRequest,
  planned: Planned<IssuedForRequest>,
): Promise<Card> {
  const userId = requireCardUser(context);
  const { customer, issued, balances } = unwrapPlan(planned);
  await lockUser(context, userId);
  // INVARIANT: locked, the cards of a user are created one after the other, and not while the wallet changes its owner.
  await getAccepted(context, body.environment, lockForUpdate);
  const { id: walletId } = await findWalletForUpdate(context, body.wallet_id);
  await findOwnWallet(context, walletId);
  await requireReady(context, body.environment, customer);
  await requireRoom(context, body);
  const card = storeIssued(context, issued, {
    ...{ appId: context.app.id, userId, environment: body.environment },
    ...{ walletId, caip2: body.chain_id, asset: body.asset },
  });
  await context.em.flush();
  return cardView(card, balances);
}

/** A new row of an issued card; the caller flushes it. */
export function storeIssued(
  { em, ids, nowMs }: OperationContext,
  issued: IssuedCard,
  of: Pick<StoredCard, 'appId' | 'userId' | 'environment' | 'walletId' | 'caip2' | 'asset'>,
): StoredCard {
  const { status, revision, brand, last4, expMonth, expYear } = issued;
  return em.create(CardEntity, {
    ...of,
    ...{ id: ids.cuid2(), issuerCardId: issued.id, status, revision, brand, last4, expMonth, expYear },
    ...{ cancellationReason: null, replacedById: null, createdAtMs: nowMs, nextCheckAtMs: null },
  });
}

async function requireRoom(
  context: PlanContext,
  { environment }: Pick<CreateCardRequest, 'environment'>,
): Promise<void> {
  const count = await context.em.count(CardEntity, {
    ...ownCards(context, environment),
    status: { $ne: 'canceled' },
  });
  if (count < MAX_CARDS) return;
  throw new ApiError('invalid_request', `expected at most ${MAX_CARDS} cards that are not canceled`);
}
