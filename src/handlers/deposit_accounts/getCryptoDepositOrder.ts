import { findOrder } from '../../domain/money/crypto-deposits/find-order.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getCryptoDepositOrder'> = ({ path }, context) =>
  findOrder(context, path.wallet_id, path.order_id);
