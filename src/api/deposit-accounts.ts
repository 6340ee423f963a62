import {
  createCryptoDepositAccount as createCryptoDepositAccountVerb,
  depositConfigSearchView,
  depositConfigView,
  listCryptoDepositAccounts as listCryptoDepositAccountsVerb,
  planCryptoDepositAccount,
} from '../domain/money/crypto-deposits/crypto-deposit-account.ts';
import { findNextOrder, findOrder } from '../domain/money/crypto-deposits/deposit-chains.ts';
import {
  planQuote,
  quoteDeposit,
  type ResolvedRoute,
} from '../domain/money/crypto-deposits/deposit-routes.ts';
import {
  createFiatDepositAccount as createFiatDepositAccountVerb,
  fiatDepositAccountViews,
  findFiatDepositAccount,
  listFiatDepositAccounts as listFiatDepositAccountsVerb,
  planFiatDepositAccount,
} from '../domain/money/fiat-deposits/fiat-deposit-account.ts';
import type { DepositAccountCryptoQuoteResponse } from '../generated/schemas.ts';
import type { Handler, PlannedHandler } from '../ports/operation-context.ts';

export const getCryptoDepositConfig: Handler<'getCryptoDepositConfig'> = async (_, context) =>
  depositConfigView(context);

export const searchCryptoDepositConfig: Handler<'searchCryptoDepositConfig'> = async ({ query }, context) =>
  depositConfigSearchView(context, query.q);

type Quote = DepositAccountCryptoQuoteResponse;

export const quoteCryptoDeposit: PlannedHandler<'quoteCryptoDeposit', Quote> = {
  plan: ({ body }, context) => planQuote(context, body),
  run: async (_input, _context, planned) => quoteDeposit(planned),
};

export const listCryptoDepositAccounts: Handler<'listCryptoDepositAccounts'> = async (
  { path, query },
  context,
) => {
  const { accounts, nextCursor } = await listCryptoDepositAccountsVerb(context, path.wallet_id, query);
  return { data: accounts, next_cursor: nextCursor };
};

export const createCryptoDepositAccount: PlannedHandler<
  'createCryptoDepositAccount',
  readonly ResolvedRoute[]
> = {
  plan: ({ path, body }, context) => planCryptoDepositAccount(context, path.wallet_id, body),
  run: async ({ path, body }, context, planned) => ({
    deposit_accounts: await createCryptoDepositAccountVerb(context, {
      walletId: path.wallet_id,
      body,
      planned,
    }),
  }),
};

export const getNextCryptoDepositOrder: Handler<'getNextCryptoDepositOrder'> = async (
  { path, query },
  context,
) => ({
  order: await findNextOrder(context, path.wallet_id, query.after),
});

export const getCryptoDepositOrder: Handler<'getCryptoDepositOrder'> = ({ path }, context) =>
  findOrder(context, path.wallet_id, path.order_id);

export const listFiatDepositAccounts: Handler<'listFiatDepositAccounts'> = async (
  { path, query },
  context,
) => {
  const accounts = await listFiatDepositAccountsVerb(context, path.wallet_id, query);
  return { fiat_deposit_accounts: await fiatDepositAccountViews(context, accounts), next_cursor: null };
};

type Found = Awaited<ReturnType<typeof planFiatDepositAccount>>;

export const createFiatDepositAccount: PlannedHandler<'createFiatDepositAccount', Found> = {
  plan: ({ path, body }, context) => planFiatDepositAccount(context, { walletId: path.wallet_id, body }),
  run: async ({ path, body }, context, planned) => {
    const account = await createFiatDepositAccountVerb(context, { walletId: path.wallet_id, body, planned });
    const [view] = await fiatDepositAccountViews(context, [account]);
    return { fiat_deposit_account: view! };
  },
};

export const getFiatDepositAccount: Handler<'getFiatDepositAccount'> = async ({ path }, context) => {
  const account = await findFiatDepositAccount(context, path.wallet_id, path.deposit_account_id);
  const [view] = await fiatDepositAccountViews(context, [account]);
  return { fiat_deposit_account: view! };
};
