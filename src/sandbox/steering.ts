import { getCardOfIssuer } from '../domain/money/cards/card.ts';
import { centsText } from '../domain/money/cards/card-transactions.ts';
import { askAbout, storeSnapshot } from '../domain/money/fiat-customers/customer-snapshot.ts';
import type { StoredFiatCustomer } from '../domain/money/fiat-customers/fiat-customer.entity.ts';
import { getFiatDeposit } from '../domain/money/fiat-deposits/record-fiat-deposits.ts';
import { ApiError, invalidField, notFound } from '../errors.ts';
import type { ControlContext, TestPayment } from './control-plane.ts';
import type { SandboxCardPayment } from './generated/schemas.ts';

/** Cents of an amount that the contract allows. Throws ApiError invalid_data for nothing. */
export function centsOf(amount: string): bigint {
  const [whole = '', fraction = ''] = amount.split('.');
  const cents = BigInt(`${whole}${fraction.padEnd(2, '0')}`);
  if (cents === 0n) throw invalidField('/amount', 'expected an amount above 0');
  return cents;
}

/** Throws ApiError not_found, and for a payment that does not allow this invalid_data or invalid_state. */
export async function paymentView(
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

/**
 * Releases or refunds a deposit that the simulated bank holds. Throws ApiError not_found, and invalid_state when it has
 * sent or refunded the deposit.
 */
export async function decideFiatDeposit(
  { fiat, read, runDueJobs }: ControlContext,
  id: string,
  outcome: 'completed' | 'refunded',
): Promise<{ id: string; deposit_account_id: string; state: string }> {
  await runDueJobs();
  const held = await read((em) => getFiatDeposit(em, id));
  if (held === undefined) throw notFound('Fiat deposit');
  if (!(await fiat.decideDeposit(held.environment, id, outcome))) {
    throw new ApiError('invalid_state', 'the bank has sent or refunded this deposit');
  }
  await runDueJobs();
  const deposit = await read((em) => getFiatDeposit(em, id));
  return { id, deposit_account_id: held.accountId, state: deposit?.state ?? held.state };
}

/** Asks the provider about a customer and stores the answer, with the event of a change. Returns the current row. */
export async function refreshCustomer(
  { fiatProviders, log, ids, clock, change }: ControlContext,
  known: StoredFiatCustomer,
): Promise<StoredFiatCustomer> {
  const snapshot = await askAbout({ fiatProviders, log }, known);
  if (snapshot === undefined) return known;
  return change((em, notes) => storeSnapshot({ em, notes, ids, nowMs: clock.now() }, known, snapshot));
}
