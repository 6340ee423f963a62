import type { SqlEntityManager } from '@mikro-orm/sql';
import { ApiError, invalidQuery, notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { CardEnvironment } from '../../../ports/card-issuers.ts';
import { findPage } from '../../../storage/find-page.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import { CardEntity, type StoredCard } from './card.entity.ts';
import { requireCardUser } from './find-issuer.ts';

type FindContext = Pick<OperationContext, 'app' | 'em' | 'proof'>;

const MAX_PAGE = 100;

/**
 * A card of the user.
 *
 * @throws ApiError missing_or_invalid_token, not_found
 */
export async function findCard(
  context: FindContext,
  cardId: string,
  environment: CardEnvironment,
  { isLocked = false }: { readonly isLocked?: boolean } = {},
): Promise<StoredCard> {
  const where = { ...ownCards(context, environment), id: lookupKey(cardId) };
  const card = await context.em.findOne(CardEntity, where, {
    ...(isLocked ? lockForUpdate : {}),
    // A card that the preparation read may have changed.
    refresh: true,
  });
  if (card === null) throw notFound('Card');
  return card;
}

/**
 * One page of the user's cards, newest first.
 *
 * @param cursor the `nextCursor` of the page before; `limit` is 1 to 100, 100 when left out.
 * @throws ApiError missing_or_invalid_token; invalid_data for a cursor of no card.
 */
export async function listCards(
  context: FindContext,
  query: {
    readonly environment: CardEnvironment;
    readonly cursor?: string | undefined;
    readonly limit?: number | undefined;
  },
): Promise<{ readonly cards: StoredCard[]; readonly nextCursor: string | null }> {
  const { environment, cursor, limit = MAX_PAGE } = query;
  const own = ownCards(context, environment);
  const after =
    cursor === undefined
      ? undefined
      : await context.em.findOne(CardEntity, { ...own, id: lookupKey(cursor) });
  if (after === null) throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
  const { page, nextCursor } = await findPage(context.em, CardEntity, own, { after, limit });
  return { cards: page, nextCursor };
}

export function ownCards(context: FindContext, environment: CardEnvironment) {
  return { appId: context.app.id, userId: requireCardUser(context), environment };
}

/** @throws ApiError invalid_state for a canceled card. */
export function requireUsable({ status }: StoredCard): void {
  if (status === 'canceled') throw new ApiError('invalid_state', 'the card is canceled');
}

/** A card of any app, for the sandbox's control plane. */
export async function getCard(
  em: SqlEntityManager,
  cardId: string,
): Promise<{ readonly environment: CardEnvironment; readonly issuerCardId: string } | undefined> {
  const card = await em.findOne(CardEntity, { id: lookupKey(cardId) });
  if (card === null) return undefined;
  return { environment: card.environment as CardEnvironment, issuerCardId: card.issuerCardId };
}

/** A card of any app by its id at the issuer, for the sandbox's control plane. */
export async function getCardOfIssuer(
  em: SqlEntityManager,
  issuerCardId: string,
): Promise<{ readonly id: string } | undefined> {
  return (await em.findOne(CardEntity, { issuerCardId })) ?? undefined;
}
