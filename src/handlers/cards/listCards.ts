import { balancesOf, cardView } from '../../domain/money/cards/card-view.ts';
import { listCards } from '../../domain/money/cards/find-card.ts';
import { findIssuer } from '../../domain/money/cards/find-issuer.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listCards'> = async ({ query }, context) => {
  const { cards, nextCursor } = await listCards(context, query);
  findIssuer(context, query.environment);
  // A GET has no transaction, so no connection is held while the chains are asked.
  const balances = await balancesOf(context, cards);
  return { data: cards.map((card) => cardView(card, balances)), next_cursor: nextCursor };
};
