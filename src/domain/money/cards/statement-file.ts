import type { CardPayment } from '../../../ports/card-issuers.ts';
import { signedCents } from './card-transactions.ts';

const HEADER = ['Date', 'Transaction', 'Merchant', 'Type', 'Amount', 'Currency'];

/**
 * A statement as CSV: the posted payments in order, and their total.
 *
 * CHOICE: a file that programs can check, not a PDF.
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

/** `-1250` is `-12.50`. */
export function centsText(cents: bigint): string {
  const digits = String(cents < 0n ? -cents : cents).padStart(3, '0');
  return `${cents < 0n ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

/**
 * A field, quoted where necessary. Text that a spreadsheet would run as a formula is preceded by an apostrophe: merchants
 * choose their own names.
 */
function fieldOf(text: string): string {
  const isFormula = /^[=+\-@\t\r]/.test(text) && !/^-?\d+\.\d\d$/.test(text);
  const safe = isFormula ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
