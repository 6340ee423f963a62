import fc from 'fast-check';
import { composeIBAN, getCountrySpecifications } from 'ibantools';
import { describe, expect, test } from 'vitest';
import { countryAlpha2 } from '../../../src/domain/base/countries/countries.ts';
import {
  faultOfIban,
  isBic,
  isBrCode,
  isPixKey,
  isRoutingNumber,
  isTaxNumber,
} from '../../../src/domain/money/external-fiat-accounts/check-account.ts';

// Published by their banks.
const routingNumbers = ['021000021', '026009593', '111000025', '122105155', '011401533', '091000019'];
// Source: the examples of Receita Federal's documents, and the companies' own numbers.
const taxNumbers = ['12345678909', '52998224725', '11222333000181', '00000000000191', '33000167000101'];
// Source: SWIFT, IBAN registry: the examples of their countries.
const ibans = [
  'DE89370400440532013000',
  'GB29NWBK60161331926819',
  'FR1420041010050500013M02606',
  'NL91ABNA0417164300',
  'ES9121000418450200051332',
  'IT60X0542811101000000123456',
  'NO9386011117947',
  'CH9300762011623852957',
  'AE070331234567890123456',
  'MT84MALT011000012345MTLCAST001S',
  'BR1800360305000010009795493C1',
  'XK051212012345678906',
];
// Source: Banco Central do Brasil, manual of the BR Code, the example of a static QR code.
const brCode =
  '00020126580014br.gov.bcb.pix0136123e4567-e12b-12d1-a456-4266554400005204000053039865802BR' +
  '5913Fulano de Tal6008BRASILIA62070503***63041D3D';

/** A number with one of its digits replaced by another. */
const withOneWrongDigit = (numbers: readonly string[]) =>
  fc
    .tuple(fc.constantFrom(...numbers), fc.nat(), fc.integer({ min: 1, max: 9 }))
    .map(([number, place, shift]) => {
      const digits = [...number].flatMap((character, at) => (/\d/.test(character) ? at : []));
      const at = digits[place % digits.length]!;
      return number.slice(0, at) + ((Number(number[at]) + shift) % 10) + number.slice(at + 1);
    });

test.each(routingNumbers)('%s is a routing number', (number) => {
  expect(isRoutingNumber(number)).toBe(true);
});

test.each(taxNumbers)('%s is a CPF or CNPJ', (number) => {
  expect(isTaxNumber(number)).toBe(true);
});

test.each(ibans)('%s is an IBAN', (iban) => {
  expect(faultOfIban(iban)).toBeUndefined();
});

test('the BR code of the manual is valid, and no text that differs from it in one digit', () => {
  expect(isBrCode(brCode)).toBe(true);
  fc.assert(fc.property(withOneWrongDigit([brCode]), (text) => !isBrCode(text)));
});

test('the check digits detect every single wrong digit', () => {
  fc.assert(fc.property(withOneWrongDigit(routingNumbers), (number) => !isRoutingNumber(number)));
  fc.assert(fc.property(withOneWrongDigit(ibans), (iban) => faultOfIban(iban) !== undefined));
});

test('a CPF has exactly one pair of check digits for its first nine digits', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^\d{9}$/), (base) => {
      fc.pre(new Set(base).size > 1);
      const valid = Array.from({ length: 100 }, (_, pair) => base + String(pair).padStart(2, '0'));
      return valid.filter(isTaxNumber).length === 1;
    }),
    { numRuns: 50 },
  );
});

describe('what is not a number of its kind', () => {
  test.each(['', '02100002', '0210000210', '000000000', '02100002a'])('%s is no routing number', (text) => {
    expect(isRoutingNumber(text)).toBe(false);
  });

  test.each(['11111111111', '1234567890', '00000000000000', '123.456.789-09'])(
    '%s is no tax number',
    (text) => {
      expect(isTaxNumber(text)).toBe(false);
    },
  );

  test.each([
    ['DE88370400440532013000', 'expected an IBAN with valid check digits'],
    [
      'DE89 3704 0044 0532 0130 00',
      'expected an IBAN in the format of its country, in capitals and without spaces',
    ],
    [
      'de89370400440532013000',
      'expected an IBAN in the format of its country, in capitals and without spaces',
    ],
    [
      'US64SVBKUS6S3300958879',
      'expected an IBAN in the format of its country, in capitals and without spaces',
    ],
  ])('what is not a number of its kind: %s is no IBAN', (iban, fault) => {
    expect(faultOfIban(iban)).toBe(fault);
  });

  test.each(['COBADEF', 'COBADEFFXX', 'cobadeffxxx', 'C0BADE!F', ''])(
    'what is not a number of its kind: %s is no BIC',
    (bic) => {
      expect(isBic(bic)).toBe(false);
    },
  );
});

test.each(['COBADEFF', 'COBADEFFXXX', 'NWBKGB2L'])('%s is a BIC', (bic) => {
  expect(isBic(bic)).toBe(true);
});

test.each(['12345678909', '+5511987654321', 'alice@example.com', '123e4567-e12b-12d1-a456-426655440000'])(
  '%s is a Pix key',
  (key) => {
    expect(isPixKey(key)).toBe(true);
  },
);

test.each(['12345678900', '5511987654321', 'alice', 'a@b', '123e4567'])('%s is no Pix key', (key) => {
  expect(isPixKey(key)).toBe(false);
});

test('every country with an IBAN has an alpha-3 code, and IBANs that a library composes are valid', () => {
  const names = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' });
  const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ'];
  const alpha3 = letters.flatMap((a) => letters.flatMap((b) => letters.map((c) => a + b + c)));
  const known = alpha3.flatMap((code) => countryAlpha2(code) ?? []);
  expect(known).toHaveLength(250);
  expect(new Set(known).size).toBe(250);
  expect(known.filter((code) => names.of(code) === undefined)).toEqual([]);
  expect(composeIBAN({ countryCode: 'DE', bban: '370400440532013000' })).toBe(ibans[0]);
  const registered = Object.entries(getCountrySpecifications()).filter(
    ([, { IBANRegistry }]) => IBANRegistry,
  );
  expect(registered.length).toBeGreaterThan(70);
  expect(registered.map(([code]) => code).filter((code) => !known.includes(code))).toEqual([]);
});
