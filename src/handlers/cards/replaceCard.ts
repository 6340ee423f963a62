import { askToReplace, type ReplacedCard, replaceCard } from '../../domain/money/cards/update-card.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'replaceCard', ReplacedCard> = ({ path, body }, context) =>
  askToReplace(context, path.card_id, body);

export const run: PreparedHandler<'replaceCard', ReplacedCard> = ({ path, body }, context, prepared) =>
  replaceCard(context, path.card_id, body, prepared);
