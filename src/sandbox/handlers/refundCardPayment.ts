import { centsOf, paymentView } from '../card-payment.ts';
import type { Handler } from '../control-plane.ts';

export const run: Handler<'refundCardPayment'> = async ({ path, body }, context) => {
  const { amount, reference } = body;
  const cents = amount === undefined ? undefined : centsOf(amount);
  const payment = await context.cards.refund(path.payment_id, { cents, reference });
  await context.runDueJobs();
  return paymentView(context, payment);
};
