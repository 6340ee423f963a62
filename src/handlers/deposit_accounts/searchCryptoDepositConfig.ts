import { depositConfigSearchView } from '../../domain/money/crypto-deposits/deposit-config-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'searchCryptoDepositConfig'> = async ({ query }, context) =>
  depositConfigSearchView(context, query.q);
