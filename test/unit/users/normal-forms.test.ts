import { base58 } from '@scure/base';
import { PublicKey } from '@solana/web3.js';
import { getAddress } from 'viem';
import { describe, expect, test } from 'vitest';
import {
  normalizeDiscordUsername,
  normalizePhoneNumber,
} from '../../../src/domain/wallets/users/linked-account-kinds.ts';
import { searchTermsOf, toSearchTerm } from '../../../src/domain/wallets/users/list-users.ts';
import { normalizeWalletAddress } from '../../../src/engine/assets/addresses.ts';

describe('phone numbers', () => {
  test.each([
    // Spelled as ITU-T E.123 has it: the country code behind `+`, groups apart.
    ['2025550143', '+1 202 555 0143'],
    ['(202) 555-0143', '+1 202 555 0143'],
    ['1-202-555-0143', '+1 202 555 0143'],
    ['+12025550143', '+1 202 555 0143'],
    ['+1 555 555 4010', '+1 555 555 4010'],
    ['+442079460123', '+44 20 7946 0123'],
    ['+4930123456', '+49 30 123456'],
    ['tel:+1-202-555-0143', '+1 202 555 0143'],
  ])('phone numbers: %s is %s', (given, normal) => {
    expect(normalizePhoneNumber(given)).toBe(normal);
    expect(normalizePhoneNumber(normal)).toBe(normal);
  });

  test.each([
    '',
    '12',
    'no number',
    '+',
    '+999 1234567',
    '202555014',
    '+1 202 555 0143 ext. 5',
    '\0',
    '1'.repeat(9000),
  ])('%j is not a phone number', (given) => {
    expect(normalizePhoneNumber(given)).toBeUndefined();
  });
});

describe('addresses', () => {
  const ethereum = '0xb6716976a3ebe8d39aceb04372f22ff8e6802d7a';
  test('of Ethereum are converted to EIP-55 case from any case', () => {
    for (const given of [ethereum, `0x${ethereum.slice(2).toUpperCase()}`, getAddress(ethereum)]) {
      expect(normalizeWalletAddress('ethereum', given)).toBe(getAddress(ethereum));
    }
    for (const given of [
      '',
      '0x',
      ethereum.slice(2),
      `${ethereum}0`,
      ethereum.slice(0, -1),
      `0X${ethereum.slice(2)}`,
    ]) {
      expect(normalizeWalletAddress('ethereum', given)).toBeUndefined();
    }
  });

  test('of Solana are base58 of 32 bytes, with the alphabet of Bitcoin', () => {
    const keys = [
      PublicKey.default,
      new PublicKey(Buffer.alloc(32, 255)),
      new PublicKey(Buffer.alloc(32, 1)),
    ];
    for (const key of keys) expect(normalizeWalletAddress('solana', key.toBase58())).toBe(key.toBase58());
    const address = keys[1]!.toBase58();
    for (const given of [
      '',
      base58.encode(Buffer.alloc(31, 255)),
      base58.encode(Buffer.alloc(33, 255)),
      address.replace(/./, '0'),
      '1'.repeat(33),
      ethereum,
    ]) {
      expect(normalizeWalletAddress('solana', given)).toBeUndefined();
    }
  });
});

test('a Discord name without a discriminator gets `#0`', () => {
  expect(normalizeDiscordUsername('alice')).toBe('alice#0');
  expect(normalizeDiscordUsername('alice#1234')).toBe('alice#1234');
});

describe('search terms', () => {
  const terms = (account: Parameters<typeof searchTermsOf>[0]) =>
    searchTermsOf(account).map((term) => Buffer.from(term).toString());

  test('search terms are the names and addresses of an account in lower case, each once', () => {
    expect(
      terms({
        type: 'google_oauth',
        subject: 'S1',
        username: null,
        details: { subject: 'S1', email: 'A@x.org', name: 'Élise' },
      }),
    ).toEqual(['s1', 'a@x.org', 'élise']);
    expect(
      terms({ type: 'email', subject: 'a@x.org', username: null, details: { address: 'a@x.org' } }),
    ).toEqual(['a@x.org']);
    expect(terms({ type: 'telegram', subject: '7', username: 'al', details: { first_name: 'Al' } })).toEqual([
      '7',
      'al',
    ]);
  });

  test('search terms of phone numbers have neither blanks nor brackets', () => {
    expect(toSearchTerm('+1 (202) 555-0143')?.toString()).toBe('+12025550143');
    expect(toSearchTerm('+1 x')?.toString()).toBe('+1 x');
  });

  test('search terms have 1 to 254 bytes', () => {
    expect(toSearchTerm('')).toBeUndefined();
    expect(toSearchTerm('é'.repeat(127))).toHaveLength(254);
    expect(toSearchTerm('é'.repeat(128))).toBeUndefined();
  });
});
