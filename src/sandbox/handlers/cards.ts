import { getCard, getCardOfIssuer } from '../../domain/money/cards/card.ts';
import { centsText } from '../../domain/money/cards/card-transactions.ts';
import { ApiError, invalidField, notFound } from '../../errors.ts';
import type { ControlContext, Handler, TestPayment } from '../control-plane.ts';
import type { SandboxCardPayment } from '../generated/schemas.ts';

export const authorizeCardPayment: Handler<'authorizeCardPayment'> = async ({ body }, context) => {
  const { amount, reference, pin, merchant_name: merchant = null, outcome } = body;
  const { cards, read, runDueJobs } = context;
  // A job reports changed users and wallets to the issuer. Run it first.
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

/**
 * Converts a valid amount to cents.
 *
 * @throws ApiError invalid_data if it is zero.
 */
function centsOf(amount: string): bigint {
  const [whole = '', fraction = ''] = amount.split('.');
  const cents = BigInt(`${whole}${fraction.padEnd(2, '0')}`);
  if (cents === 0n) throw invalidField('/amount', 'expected an amount above 0');
  return cents;
}

/**
 * Returns a payment in the form of the control plane.
 *
 * @throws ApiError not_found; invalid_data or invalid_state if the payment does not allow the tester's action.
 */
async function paymentView(
  { read }: Pick<ControlContext, 'read'>,
  payment: TestPayment | 'amount' | 'funds' | 'status' | undefined,
): Promise<SandboxCardPayment> {
  if (payment === undefined) throw notFound('Card payment');
  if (payment === 'amount') throw invalidField('/amount', 'expected an amount that the payment allows');
  if (payment === 'funds') throw new ApiError('invalid_state', 'the wallet cannot pay the difference');
  if (payment === 'status')
    throw new ApiError('invalid_state', 'the status of the payment does not allow this');
  const card = await read((em) => getCardOfIssuer(em, payment.cardId));
  return {
    id: payment.id,
    card_id: card?.id ?? payment.cardId,
    kind: payment.kind,
    status: payment.status,
    amount: centsText(payment.kind === 'refund' ? -payment.cents : payment.cents),
    currency: payment.currency,
    merchant_name: payment.merchant,
    decline_reason: payment.declineReason,
    transaction_hash: payment.hash,
  };
}
