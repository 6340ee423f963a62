import { centsOf, paymentView } from '../card-payment.ts';
import type { Handler } from '../control-plane.ts';

export const run: Handler<'captureCardPayment'> = async ({ path, body: { amount } }, context) => {
  const cents = amount === undefined ? undefined : centsOf(amount);
  const payment = await context.cards.capture(path.payment_id, cents);
  await context.runDueJobs();
  return paymentView(context, payment);
};
