import type { Handler } from '../control-plane.ts';
import { decideFiatDeposit } from '../decide-fiat-deposit.ts';

export const run: Handler<'refundFiatDeposit'> = ({ path }, context) =>
  decideFiatDeposit(context, path.deposit_id, 'refunded');
