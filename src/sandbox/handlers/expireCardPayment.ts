import { paymentView } from '../card-payment.ts';
import type { Handler } from '../control-plane.ts';

export const run: Handler<'expireCardPayment'> = async ({ path }, context) => {
  const payment = await context.cards.release(path.payment_id, 'expired');
  await context.runDueJobs();
  return paymentView(context, payment);
};
