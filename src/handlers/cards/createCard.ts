import { askForCard, createCard, type IssuedForRequest } from '../../domain/money/cards/issue-card.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'createCard', IssuedForRequest> = ({ body }, context) =>
  askForCard(context, body);

export const run: PreparedHandler<'createCard', IssuedForRequest> = ({ body }, context, prepared) =>
  createCard(context, body, prepared);
