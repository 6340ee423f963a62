import { hash } from 'node:crypto';
import { isValidBIC, ValidationErrorsIBAN, validateIBAN } from 'ibantools';
import { canonicalJson } from '../../../engine/crypto/encoding.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type {
  CreateExternalFiatAccountRequest,
  ExternalFiatAccountData,
} from '../../../generated/schemas.ts';
import type { FiatRefusal } from '../../../ports/fiat.ts';
import { countryAlpha2, isCountry } from '../../base/countries/countries.ts';

/** Returns whether a string is a Brazilian tax number: a CPF of 11 digits or a CNPJ of 14, with valid check digits. */
export function isTaxNumber(text: string): boolean {
  if (/^(\d)\1*$/.test(text)) return false;
  if (/^\d{11}$/.test(text)) return hasCheckDigits(text, 9, cpfWeight);
  return /^\d{14}$/.test(text) && hasCheckDigits(text, 12, cnpjWeight);
}

// Counted from the right, the digits have the weights 2, 3, 4 and so on. In a CNPJ, the weights start again after 9.
const cpfWeight = (fromRight: number): number => fromRight + 2;
const cnpjWeight = (fromRight: number): number => (fromRight % 8) + 2;

/**
 * Verifies both check digits. Source: Receita Federal, modulo 11: d = 11 - (sum of weighted digits mod 11), or 0 if
 * that is above 9.
 */
function hasCheckDigits(text: string, length: number, weight: (fromRight: number) => number): boolean {
  return [length, length + 1].every((end) => {
    const digits = [...text.slice(0, end)].map(Number);
    const sum = digits.reduce((total, digit, at) => total + digit * weight(end - 1 - at), 0);
    const rest = sum % 11;
    return Number(text[end]) === (rest < 2 ? 0 : 11 - rest);
  });
}

/** Returns whether a string is a Pix key: a tax number, a phone number, an email address or a random key. */
export function isPixKey(text: string): boolean {
  if (/^\d+$/.test(text)) return isTaxNumber(text);
  // Source: DICT API of the Banco Central, Key.
  if (/^\+[1-9]\d{1,14}$/.test(text)) return true;
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return true;
  return text.length <= 77 && /^[^\s@]+@[^\s@.]+(?:\.[^\s@.]+)+$/.test(text);
}

// A payload format indicator, then data objects. The last object is the CRC over everything before its value.
const BR_CODE = /^000201.*6304[0-9A-F]{4}$/s;

/** Returns whether a string is a BR code: the content of a Pix QR code, with a valid checksum. */
export function isBrCode(text: string): boolean {
  if (!BR_CODE.test(text)) return false;
  return crc16(text.slice(0, -4)) === Number.parseInt(text.slice(-4), 16);
}

/**
 * Computes the checksum of a BR code. Source: EMV QRCPS merchant-presented mode, §4.7.3: ISO/IEC 13239, polynomial
 * 0x1021, initial value 0xffff.
 */
function crc16(text: string): number {
  let crc = 0xffff;
  for (const byte of Buffer.from(text, 'utf8')) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021) & 0xffff;
  }
  return crc;
}

/**
 * Returns the fault of an IBAN; undefined for a valid IBAN. The message does not repeat the number, which is personal.
 */
export function faultOfIban(text: string): string | undefined {
  const { errorCodes } = validateIBAN(text);
  if (errorCodes.length === 0) return undefined;
  const isChecksum = errorCodes.every((code) => code === ValidationErrorsIBAN.WrongIBANChecksum);
  return isChecksum
    ? 'expected an IBAN with valid check digits'
    : 'expected an IBAN in the format of its country, in capitals and without spaces';
}

/** Returns whether a string is a BIC of 8 or 11 characters, in capitals. */
export function isBic(text: string): boolean {
  return text === text.toUpperCase() && isValidBIC(text);
}

// Source: ABA routing number policy. The weights repeat over the nine digits.
const WEIGHTS = [3, 7, 1];

/** Returns whether a string is a US routing number: nine digits, weighted sum divisible by 10. */
export function isRoutingNumber(text: string): boolean {
  if (!/^\d{9}$/.test(text) || text === '000000000') return false;
  // 3(d1 + d4 + d7) + 7(d2 + d5 + d8) + (d3 + d6 + d9) mod 10 = 0
  const sum = [...text].reduce((total, digit, at) => total + Number(digit) * WEIGHTS[at % 3]!, 0);
  return sum % 10 === 0;
}

type AccountType = ExternalFiatAccountData['type'];
type AccountOf<Type extends AccountType> = Extract<ExternalFiatAccountData, { type: Type }>;

/** The only currency of each account type. Account types with several currencies are absent. */
const currencies: Partial<Readonly<Record<AccountType, string>>> = {
  us: 'usd',
  iban: 'eur',
  gb: 'gbp',
  pix: 'brl',
};

/** CHOICE: SWIFT accounts may have the same currencies as deposit accounts. */
export const providerCurrencies: readonly string[] = ['usd', 'eur', 'gbp', 'brl', 'mxn', 'cop'];

/**
 * Checks the numbers of a bank account as far as possible without its bank: formats, check digits, and the currency
 * of the account type. Error messages never repeat a number.
 *
 * @throws ApiError invalid_data naming the field.
 */
export function checkAccount(body: CreateExternalFiatAccountRequest): void {
  const { account, currency, address } = body;
  switch (account.type) {
    case 'us':
      checkUs(account, address);
      break;
    case 'iban':
      checkIban(account);
      break;
    case 'pix':
      checkPix(account);
      break;
    case 'swift':
      checkSwift(account);
      break;
    case 'gb':
      // Only the patterns of the API document apply, because the check digits of UK numbers differ from bank to bank.
      break;
  }
  checkCountry('/address/country', address?.country);
  checkCurrency(account.type, currency);
}

/** Returns the last four characters of an account number; undefined for accounts without one. */
export function lastFourOf(account: ExternalFiatAccountData): string | undefined {
  return account.type === 'pix' ? undefined : account.account_number.slice(-4);
}

function checkUs(account: AccountOf<'us'>, address: CreateExternalFiatAccountRequest['address']): void {
  if (!isRoutingNumber(account.routing_number)) {
    throw invalidField('/account/routing_number', 'expected nine digits with a valid check digit');
  }
  if (!/^\d{4,17}$/.test(account.account_number)) {
    throw invalidField('/account/account_number', 'expected 4 to 17 digits');
  }
  const { checking_or_savings: kind } = account;
  if (kind !== undefined && kind !== 'checking' && kind !== 'savings') {
    throw invalidField('/account/checking_or_savings', 'expected `checking` or `savings`');
  }
  if (address === undefined)
    throw invalidField('/address', 'expected the address of the owner of a US account');
}

function checkIban({ account_number: iban, bic, country }: AccountOf<'iban'>): void {
  const fault = faultOfIban(iban);
  if (fault !== undefined) throw invalidField('/account/account_number', fault);
  checkCountry('/account/country', country);
  if (countryAlpha2(country) !== iban.slice(0, 2)) {
    throw invalidField('/account/country', 'expected the country of the IBAN');
  }
  checkBic(bic);
}

function checkPix({ pix_key: key, br_code: code, document_number: tax }: AccountOf<'pix'>): void {
  if ((key === undefined) === (code === undefined)) {
    throw invalidField('/account', 'expected either `pix_key` or `br_code`');
  }
  if (key !== undefined && !isPixKey(key)) {
    throw invalidField('/account/pix_key', 'expected a tax number, a phone number, an email or a random key');
  }
  if (code !== undefined && !isBrCode(code)) {
    throw invalidField('/account/br_code', 'expected the text of a Pix QR code with a valid checksum');
  }
  if (tax !== undefined && !isTaxNumber(tax)) {
    throw invalidField('/account/document_number', 'expected a CPF or CNPJ with valid check digits');
  }
}

function checkSwift({ account_number: number, bic, country }: AccountOf<'swift'>): void {
  checkBic(bic);
  checkCountry('/account/country', country);
  if (!/^[0-9A-Z]{1,34}$/.test(number)) {
    throw invalidField('/account/account_number', 'expected at most 34 digits and capital letters');
  }
}

function checkBic(bic: string): void {
  if (!isBic(bic)) throw invalidField('/account/bic', 'expected a BIC of 8 or 11 characters, in capitals');
}

function checkCountry(pointer: string, country: string | undefined): void {
  if (country === undefined || isCountry(country)) return;
  throw invalidField(pointer, 'expected an ISO 3166-1 alpha-3 code in capitals');
}

function checkCurrency(type: AccountType, currency: string): void {
  const only = currencies[type];
  if (only === undefined ? providerCurrencies.includes(currency) : currency === only) return;
  const expected = only ?? providerCurrencies.join('`, `');
  throw invalidField(
    '/currency',
    `expected \`${expected}\` for an account of type \`${type}\`, got \`${currency}\``,
  );
}

/**
 * Returns the values that identify an account: its numbers and its currency.
 *
 * CHOICE: names and addresses do not identify it. To change them, a client removes the account and registers it again.
 */
export function identityOf({ account, currency }: CreateExternalFiatAccountRequest): object {
  return { type: account.type, currency, numbers: numbersOf(account) };
}

function numbersOf(account: ExternalFiatAccountData): readonly string[] {
  switch (account.type) {
    case 'us':
      return [account.routing_number, account.account_number];
    case 'gb':
      return [account.sort_code, account.account_number];
    case 'iban':
      return [account.account_number];
    case 'swift':
      return [account.bic, account.account_number];
    case 'pix':
      return [account.pix_key ?? '', account.br_code ?? ''];
  }
}

/**
 * Derives an idempotency key for the provider, which is never stored. Repeated and concurrent requests of all processes
 * derive the same key.
 *
 * @param parts JSON values.
 */
export function providerKey(...parts: readonly unknown[]): string {
  return hash('sha256', canonicalJson(parts));
}

/**
 * Converts the refusal of a provider to our response.
 *
 * @param at pointers to the submitted data, and to the currency or asset, in the body.
 */
export function fiatRefusal(
  { fault, pointer = '', message }: FiatRefusal,
  at: { readonly data: string; readonly pair: string },
): ApiError {
  if (fault === 'pair') return new ApiError('not_supported', `${at.pair}: ${message}`);
  if (fault === 'customer') return new ApiError('invalid_state', message);
  return invalidField(at.data + pointer, message);
}
