import type { FiatDepositInstructions, VirtualAccount } from '../../../ports/fiat.ts';
import type { Currency } from './money.ts';

const RAILS: Readonly<Record<Currency, readonly string[]>> = {
  usd: ['ach_push', 'wire'],
  eur: ['sepa'],
  gbp: ['faster_payments'],
  brl: ['pix'],
  mxn: ['spei'],
  cop: ['bre_b'],
};

const BANK_NAME = 'Simulated Bank';
const BANK_ADDRESS = '1 Example Street, Springfield';
const HOLDER = 'Simulated Bank Customer';

export function railsOf(currency: Currency): VirtualAccount['paymentRails'] {
  return RAILS[currency];
}

/**
 * Returns the payment instructions for the account with this number. Account numbers have valid check digits; the
 * bank is fictitious.
 */
export function instructionsOf(currency: Currency, number: number): FiatDepositInstructions {
  const rails = [...RAILS[currency]];
  const digits = (length: number): string => String(number).padStart(length, '0');
  switch (currency) {
    case 'usd':
      return {
        bank_name: BANK_NAME,
        bank_address: BANK_ADDRESS,
        bank_routing_number: withRoutingDigit('12345678'),
        bank_account_number: digits(12),
        bank_beneficiary_name: HOLDER,
        bank_beneficiary_address: BANK_ADDRESS,
        payment_rails: rails,
      };
    case 'eur':
      return {
        bank_name: BANK_NAME,
        bank_address: BANK_ADDRESS,
        iban: ibanOf('DE', `12345678${digits(10)}`),
        bic: 'SIMUDEFFXXX',
        account_holder_name: HOLDER,
        payment_rails: rails,
      };
    case 'gbp':
      return {
        bank_name: BANK_NAME,
        sort_code: '123456',
        account_number: digits(8),
        account_holder_name: HOLDER,
        payment_rails: rails,
      };
    case 'brl':
      return { br_code: brCodeOf(digits(10)), account_holder_name: HOLDER, payment_rails: rails };
    case 'mxn':
      return {
        clabe: withClabeDigit(`646180${digits(11)}`),
        account_holder_name: HOLDER,
        payment_rails: rails,
      };
    case 'cop':
      return { bre_b_key: `@sim${digits(8)}`, account_holder_name: HOLDER, payment_rails: rails };
  }
}

/** Appends the ABA check digit: 3·(d1+d4+d7) + 7·(d2+d5+d8) + (d3+d6+d9) is a multiple of 10. */
function withRoutingDigit(first8: string): string {
  return first8 + checkDigit(first8, [3, 7, 1]);
}

/**
 * Appends the CLABE check digit: each digit is multiplied by 3, 7 or 1 in turn, modulo 10; the sum including the
 * check digit is a multiple of 10.
 */
function withClabeDigit(first17: string): string {
  const sum = [...first17].reduce((total, digit, index) => {
    const weight = [3, 7, 1][index % 3]!;
    return total + ((Number(digit) * weight) % 10);
  }, 0);
  return `${first17}${(10 - (sum % 10)) % 10}`;
}

function checkDigit(digits: string, weights: readonly number[]): string {
  const sum = [...digits].reduce(
    (total, digit, index) => total + Number(digit) * weights[index % weights.length]!,
    0,
  );
  return String((10 - (sum % 10)) % 10);
}

/**
 * Returns the IBAN of an account (ISO 13616): check digits = 98 − (account ‖ country ‖ 00, letters as numbers) mod
 * 97.
 */
function ibanOf(country: string, account: string): string {
  const numeric = [...`${account}${country}00`].map((char) => String(Number.parseInt(char, 36))).join('');
  const check = 98n - (BigInt(numeric) % 97n);
  return `${country}${String(check).padStart(2, '0')}${account}`;
}

/**
 * Returns the content of a Pix QR code (EMV merchant QR): fields with id, length and value, then the
 * CRC-16/CCITT-FALSE of everything before it.
 */
function brCodeOf(key: string): string {
  const account = field('00', 'br.gov.bcb.pix') + field('01', `sim${key}@bank.example`);
  const fields =
    field('00', '01') +
    field('26', account) +
    field('52', '0000') +
    field('53', '986') +
    field('58', 'BR') +
    field('59', HOLDER.toUpperCase()) +
    field('60', 'BRASILIA') +
    field('62', field('05', '***'));
  const text = `${fields}6304`;
  return text + crc16(text).toString(16).toUpperCase().padStart(4, '0');
}

function field(id: string, value: string): string {
  return `${id}${String(value.length).padStart(2, '0')}${value}`;
}

function crc16(text: string): number {
  let crc = 0xffff;
  for (const byte of Buffer.from(text, 'ascii')) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1)
      crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
  }
  return crc;
}
