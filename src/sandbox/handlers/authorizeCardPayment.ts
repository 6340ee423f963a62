import { getCard } from '../../domain/money/cards/find-card.ts';
import { notFound } from '../../errors.ts';
import { centsOf, paymentView } from '../card-payment.ts';
import type { Handler } from '../control-plane.ts';

export const run: Handler<'authorizeCardPayment'> = async ({ body }, context) => {
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
