import { ApiError, invalidQuery, notFound } from '../../../errors.ts';
import type { CardTransaction } from '../../../generated/schemas.ts';
import type { CardEnvironment, CardPayment } from '../../../ports/cards.ts';
import { type PlanContext, type Planned, unwrapPlan } from '../../../ports/operation-context.ts';
import { findCard, requireUsable } from './card.ts';
import { askIssuer, findIssuer } from './card-customer.ts';

const MAX_PAGE = 100;

interface TransactionPage {
  readonly data: CardTransaction[];
  readonly next_cursor: string | null;
}

/**
 * Lists one page of the transactions of a card, newest first, as the issuer reports them.
 *
 * @throws ApiError missing_or_invalid_token, not_found, not_supported, unavailable; invalid_data for an unknown cursor.
 */
export async function listCardTransactions(
  context: PlanContext,
  cardId: string,
  query: {
    readonly environment: CardEnvironment;
    readonly cursor?: string | undefined;
    readonly limit?: number | undefined;
  },
): Promise<TransactionPage> {
  const { environment, cursor, limit = MAX_PAGE } = query;
  const card = await findCard(context, cardId, environment);
  const issuer = findIssuer(context, environment);
  const page = await askIssuer(() => issuer.payments(card.issuerCardId, { cursor, limit }));
  if (page === undefined) throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
  return { data: page.payments.map(transactionView), next_cursor: page.nextCursor };
}

/**
 * Converts a payment to wire form.
 *
 * CHOICE: `dispute` is always null, because the issuer reports no disputes.
 */
function transactionView(payment: CardPayment): CardTransaction {
  return {
    id: payment.id,
    amount: Number(signedCents(payment)),
    currency: payment.currency,
    created: Math.floor(payment.createdAtMs / 1000),
    status: payment.status,
    merchant: { name: payment.merchant },
    dispute: null,
  };
}

/** Returns the amount that the wallet pays, in cents. A refund is negative. */
function signedCents({ kind, cents }: CardPayment): bigint {
  return kind === 'refund' ? -cents : cents;
}

/**
 * Requests a secret from the issuer with which a web page can show the number of a card.
 *
 * @throws ApiError missing_or_invalid_token, not_found, invalid_state, not_supported, unavailable
 */
export async function makeEphemeralKey(
  context: PlanContext,
  cardId: string,
  { environment, nonce }: { readonly environment: CardEnvironment; readonly nonce: string },
): Promise<string> {
  const card = await findCard(context, cardId, environment);
  const issuer = findIssuer(context, environment);
  requireUsable(card);
  const answer = await askIssuer(() => issuer.ephemeralKey(card.issuerCardId, nonce));
  if (typeof answer === 'string') return answer;
  throw new ApiError('invalid_state', answer.message);
}

/** Returns the planned key. It is a secret and is never stored. */
export function ephemeralKeyOf(planned: Planned<string>): string {
  return unwrapPlan(planned);
}

/** CHOICE: the maximum number of transactions in a statement. */
const MAX_LINES = 5_000;

/**
 * Reads the transactions of a card that were posted in a month, in order.
 *
 * @param period `YYYY-MM`, a calendar month in UTC.
 * @throws ApiError missing_or_invalid_token, not_supported, unavailable; not_found, also for a month without a
 * statement; invalid_request for more than 5,000 transactions.
 */
export async function readStatement(
  context: PlanContext,
  cardId: string,
  { environment, period }: { readonly environment: CardEnvironment; readonly period: string },
): Promise<readonly CardPayment[]> {
  const card = await findCard(context, cardId, environment);
  const issuer = findIssuer(context, environment);
  const { fromMs, beforeMs } = monthOf(period);
  if (fromMs > context.nowMs || beforeMs <= card.createdAtMs) throw notFound('Statement');
  const query = { fromMs, beforeMs, limit: MAX_LINES + 1 };
  const posted = await askIssuer(() => issuer.posted(card.issuerCardId, query));
  if (posted.length <= MAX_LINES) return posted;
  throw new ApiError('invalid_request', `expected at most ${MAX_LINES} transactions in a month`);
}

/** Returns the start of a month and the start of the next month, Unix ms. */
function monthOf(period: string): { readonly fromMs: number; readonly beforeMs: number } {
  const [year, month] = period.split('-').map(Number) as [number, number];
  return { fromMs: startOf(year, month - 1), beforeMs: startOf(year, month) };
}

function startOf(year: number, monthIndex: number): number {
  // Date.UTC maps the years 0 to 99 to the twentieth century.
  return new Date(0).setUTCFullYear(year, monthIndex, 1);
}

const HEADER = ['Date', 'Transaction', 'Merchant', 'Type', 'Amount', 'Currency'];

/**
 * Writes a statement as CSV: the posted payments in order, and their total.
 *
 * CHOICE: the format is CSV instead of PDF, so that programs can check the statement.
 *
 * Source: RFC 4180.
 *
 * @param period `YYYY-MM`
 */
export function statementFile(period: string, posted: readonly CardPayment[]): string {
  const lines = posted.map((payment) => [
    dayOf(payment.postedAtMs ?? payment.createdAtMs),
    payment.id,
    payment.merchant ?? '',
    payment.kind,
    centsText(signedCents(payment)),
    payment.currency,
  ]);
  const total = posted.reduce((sum, payment) => sum + signedCents(payment), 0n);
  const currency = posted[0]?.currency ?? 'usd';
  const sum = [period, '', '', 'total', centsText(total), currency];
  return [HEADER, ...lines, sum].map((fields) => `${fields.map(fieldOf).join(',')}\r\n`).join('');
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** Formats cents as a decimal amount: `-1250` is `-12.50`. */
export function centsText(cents: bigint): string {
  const digits = String(cents < 0n ? -cents : cents).padStart(3, '0');
  return `${cents < 0n ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

/**
 * Returns a CSV field, quoted where necessary. An apostrophe precedes text that a spreadsheet would run as a formula,
 * because merchants choose their own names.
 */
function fieldOf(text: string): string {
  const isFormula = /^[=+\-@\t\r]/.test(text) && !/^-?\d+\.\d\d$/.test(text);
  const safe = isFormula ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
