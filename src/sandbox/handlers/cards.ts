import { getCard } from '../../domain/money/cards/card.ts';
import { notFound } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';
import { centsOf, paymentView } from '../steering.ts';

export const authorizeCardPayment: Handler<'authorizeCardPayment'> = async ({ body }, context) => {
  const { amount, reference, pin, merchant_name: merchant = null, outcome } = body;
  const { cards, read, runDueJobs } = context;
  // What happened to users and wallets reaches the issuer by a job.
  await runDueJobs();
  const card = await read((em) => getCard(em, body.card_id));
  if (card === undefined) throw notFound('Card');
  const payment = await cards.authorize(card.environment, {
    ...{ cardId: card.issuerCardId, cents: centsOf(amount), merchant, reference, pin },
    isDeclined: outcome === 'declined',
  });
  await runDueJobs();
  return paymentView(context, payment);
};

export const captureCardPayment: Handler<'captureCardPayment'> = async (
  { path, body: { amount } },
  context,
) => {
  const cents = amount === undefined ? undefined : centsOf(amount);
  const payment = await context.cards.capture(path.payment_id, cents);
  await context.runDueJobs();
  return paymentView(context, payment);
};

export const reverseCardPayment: Handler<'reverseCardPayment'> = async ({ path }, context) => {
  const payment = await context.cards.release(path.payment_id, 'reversed');
  await context.runDueJobs();
  return paymentView(context, payment);
};

export const expireCardPayment: Handler<'expireCardPayment'> = async ({ path }, context) => {
  const payment = await context.cards.release(path.payment_id, 'expired');
  await context.runDueJobs();
  return paymentView(context, payment);
};

export const refundCardPayment: Handler<'refundCardPayment'> = async ({ path, body }, context) => {
  const { amount, reference } = body;
  const cents = amount === undefined ? undefined : centsOf(amount);
  const payment = await context.cards.refund(path.payment_id, { cents, reference });
  await context.runDueJobs();
  return paymentView(context, payment);
};
