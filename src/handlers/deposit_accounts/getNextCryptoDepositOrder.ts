import { findNextOrder } from '../../domain/money/crypto-deposits/find-order.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getNextCryptoDepositOrder'> = async ({ path, query }, context) => ({
  order: await findNextOrder(context, path.wallet_id, query.after),
});
