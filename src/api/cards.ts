import {
  askForCard,
  balancesOf,
  cardView,
  createCard as createCardVerb,
  type IssuedForRequest,
  listCards as listCardsVerb,
} from '../domain/money/cards/card.ts';
import {
  acceptCardTerms,
  askToOpen,
  createCardCustomer as createCardCustomerVerb,
  findIssuer,
  getCardCustomer as getCardCustomerVerb,
  type LookedAtCustomer,
  lookAtCustomer,
  type OpenedCustomer,
  readCardConfig,
} from '../domain/money/cards/card-customer.ts';
import {
  ephemeralKeyOf,
  listCardTransactions as listCardTransactionsVerb,
  makeEphemeralKey,
  readStatement,
  statementFile,
} from '../domain/money/cards/card-transactions.ts';
import {
  askToChange,
  askToReplace,
  type ChangedCard,
  type ReplacedCard,
  replaceCard as replaceCardVerb,
  updateCard as updateCardVerb,
} from '../domain/money/cards/update-card.ts';
import type { Handler, PlannedHandler } from '../ports/operation-context.ts';

export const getCardConfig: Handler<'getCardConfig'> = async ({ path, query }, context) => ({
  data: await readCardConfig(context, path.app_id, query.environment),
});

export const listCards: Handler<'listCards'> = async ({ query }, context) => {
  const { cards, nextCursor } = await listCardsVerb(context, query);
  findIssuer(context, query.environment);
  // A GET has no transaction, so it holds no connection while the chains are called.
  const balances = await balancesOf(context, cards);
  return { data: cards.map((card) => cardView(card, balances)), next_cursor: nextCursor };
};

export const createCard: PlannedHandler<'createCard', IssuedForRequest> = {
  plan: ({ body }, context) => askForCard(context, body),
  run: ({ body }, context, planned) => createCardVerb(context, body, planned),
};

export const getCardCustomer: PlannedHandler<'getCardCustomer', LookedAtCustomer> = {
  plan: ({ query }, context) => lookAtCustomer(context, query.environment),
  run: async ({ query }, context, planned) => ({
    data: await getCardCustomerVerb(context, query.environment, planned),
  }),
};

export const createCardCustomer: PlannedHandler<'createCardCustomer', OpenedCustomer> = {
  plan: ({ body }, context) => askToOpen(context, body.environment),
  run: async ({ body }, context, planned) => ({
    data: await createCardCustomerVerb(context, body.environment, planned),
  }),
};

export const updateCardCustomer: PlannedHandler<'updateCardCustomer', LookedAtCustomer> = {
  plan: ({ body }, context) => lookAtCustomer(context, body.environment),
  run: async ({ body }, context, planned) => ({ data: await acceptCardTerms(context, body, planned) }),
};

export const updateCard: PlannedHandler<'updateCard', ChangedCard> = {
  plan: ({ path, body }, context) => askToChange(context, path.card_id, body),
  run: ({ path, body }, context, planned) => updateCardVerb(context, path.card_id, body, planned),
};

export const createCardEphemeralKey: PlannedHandler<'createCardEphemeralKey', string> = {
  plan: ({ path, body }, context) => makeEphemeralKey(context, path.card_id, body),
  run: async (_input, _context, planned) => ({
    data: { ephemeral_key_secret: ephemeralKeyOf(planned) },
  }),
};

export const replaceCard: PlannedHandler<'replaceCard', ReplacedCard> = {
  plan: ({ path, body }, context) => askToReplace(context, path.card_id, body),
  run: ({ path, body }, context, planned) => replaceCardVerb(context, path.card_id, body, planned),
};

export const getCardStatement: Handler<'getCardStatement'> = async ({ path, query }, context) => {
  const { card_id: cardId, period } = path;
  const posted = await readStatement(context, cardId, { environment: query.environment, period });
  return statementFile(period, posted);
};

export const listCardTransactions: Handler<'listCardTransactions'> = ({ path, query }, context) =>
  listCardTransactionsVerb(context, path.card_id, query);
