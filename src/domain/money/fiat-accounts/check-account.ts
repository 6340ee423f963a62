import { hash } from 'node:crypto';
import { canonicalJson } from '../../../engine/crypto/encoding.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type {
  CreateExternalFiatAccountRequest,
  ExternalFiatAccountData,
} from '../../../generated/schemas.ts';
import type { FiatRefusal } from '../../../ports/fiat.ts';
import {
  faultOfIban,
  isBic,
  isBrCode,
  isPixKey,
  isRoutingNumber,
  isTaxNumber,
} from '../../base/bank-numbers/bank-numbers.ts';
import { countryAlpha2, isCountry } from '../../base/countries/countries.ts';

type AccountType = ExternalFiatAccountData['type'];
type AccountOf<Type extends AccountType> = Extract<ExternalFiatAccountData, { type: Type }>;

/** The currency of account types that have only one. */
const currencies: Partial<Readonly<Record<AccountType, string>>> = {
  us: 'usd',
  iban: 'eur',
  gb: 'gbp',
  pix: 'brl',
};

/** CHOICE: SWIFT payments have the same currencies as deposit accounts. */
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
      // Only the contract's patterns apply, because the check digits of UK numbers differ from bank to bank.
      break;
  }
  checkCountry('/address/country', address?.country);
  checkCurrency(account.type, currency);
}

/** The last four characters of an account number; undefined for accounts without one. */
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
 * The identity of an account: its numbers and its currency.
 *
 * CHOICE: names and addresses are not part of it. To change them, remove the account and register it again.
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
 * An idempotency key for the provider, which is never stored. Repeated and concurrent requests of all processes
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
