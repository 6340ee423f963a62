import { askToChange, type ChangedCard, updateCard } from '../../domain/money/cards/update-card.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'updateCard', ChangedCard> = ({ path, body }, context) =>
  askToChange(context, path.card_id, body);

export const run: PreparedHandler<'updateCard', ChangedCard> = ({ path, body }, context, prepared) =>
  updateCard(context, path.card_id, body, prepared);
