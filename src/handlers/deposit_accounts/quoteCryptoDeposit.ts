import { prepareQuote, quoteDeposit } from '../../domain/money/crypto-deposits/quote-deposit.ts';
import type { DepositAccountCryptoQuoteResponse } from '../../generated/schemas.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

type Quote = DepositAccountCryptoQuoteResponse;

export const prepare: Preparation<'quoteCryptoDeposit', Quote> = ({ body }, context) =>
  prepareQuote(context, body);

export const run: PreparedHandler<'quoteCryptoDeposit', Quote> = async (_input, _context, prepared) =>
  quoteDeposit(prepared);
