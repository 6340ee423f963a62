import { describe, expect, test } from 'vitest';
import type { LinkedAccount } from '../../../src/generated/schemas.ts';
import type { SandboxFault } from '../../../src/sandbox/generated/schemas.ts';
import { faultRequest, formFields, hitsText, selectionText } from '../../../src/web/inspector/fault-draft.ts';
import { matching } from '../../../src/web/inspector/parts/matching.ts';
import {
  accountText,
  markText,
  nameOfFile,
  resourceHref,
  savedText,
  shareText,
  shownOperations,
  sizeText,
  userText,
} from '../../../src/web/inspector/texts.ts';

describe('a fault rule', () => {
  test('a fault rule is what was typed for its effect; texts of other effects are left out', () => {
    const draft = {
      operation: ' walletRpc ',
      code: 'unavailable',
      is_undocumented: 'true',
      probability: '25%',
      count: '3',
      delay_ms: '200',
      chain: 'eip155:1',
      app_id: ' ',
    };
    expect(faultRequest('error', draft)).toEqual({
      effect: 'error',
      operation: 'walletRpc',
      code: 'unavailable',
      is_undocumented: true,
      probability: 0.25,
      count: 3,
    });
    expect(faultRequest('transaction_delay', { ...draft, probability: '0.5' })).toEqual({
      effect: 'transaction_delay',
      chain: 'eip155:1',
      delay_ms: 200,
      probability: 0.5,
      count: 3,
    });
    expect(faultRequest('latency', {})).toEqual({ effect: 'latency' });
  });

  test('a fault rule has numbers where numbers are expected', () => {
    expect(() => faultRequest('latency', { delay_ms: '2s' })).toThrow(
      'Delay (ms): expected a number, got `2s`',
    );
    expect(() => faultRequest('latency', { count: 'NaN' })).toThrow('expected a number, got `NaN`');
  });

  test('a fault rule offers the fields of its effect', () => {
    expect(formFields('webhook_duplicate')).toEqual([
      'event_type',
      'app_id',
      'wallet_id',
      'probability',
      'count',
    ]);
  });

  test('a fault rule is described by what it selects and how many times it has applied', () => {
    const fault = {
      operation: 'walletRpc',
      app_id: null,
      wallet_id: 'w1',
      chain: null,
      event_type: null,
    } as SandboxFault;
    expect(selectionText(fault)).toBe('operation walletRpc, wallet w1');
    expect(selectionText({ ...fault, operation: null, wallet_id: null })).toBe('everything');
    expect(hitsText({ probability: 0.25, count: 3, hits: 1 })).toBe('25%, 1 of 3');
    expect(hitsText({ probability: 1, count: null, hits: 4 })).toBe('4');
  });
});

test('a snapshot is described by its size and when it was saved', () => {
  expect([0, 999, 1000, 1_179_648, 256e6, 5e12].map(sizeText)).toEqual([
    '0 B',
    '999 B',
    '1 kB',
    '1.2 MB',
    '256 MB',
    '5000 GB',
  ]);
  const snapshot = { name: 'a', bytes: 1, saved_at_ms: 0, now_ms: 0, version: '0.1.0' };
  expect(savedText(snapshot)).toBe('1970-01-01 00:00:00.000 UTC, version 0.1.0');
  expect(savedText({ ...snapshot, saved_at_ms: null, version: null })).toContain('is not a snapshot');
});

test('resources of a scenario lead to the pages that show them', () => {
  expect(resourceHref({ type: 'wallet', id: 'w1' })).toBe('#/wallets/w1');
  expect(resourceHref({ type: 'webhook_endpoint', id: 'e1' })).toBe('#/webhooks/e1');
  expect(resourceHref({ type: 'intent', id: 'i1' })).toBe('#/intents/i1');
  expect(resourceHref({ type: 'policy', id: 'p1' })).toBe('#/policies/p1');
  expect(resourceHref({ type: 'key_quorum', id: 'q1' })).toBe('#/quorums/q1');
  expect(resourceHref({ type: 'card', id: 'c1' })).toBeUndefined();
});

test('rows are found by any of their texts, in either case', () => {
  const rows = [
    { id: 'a', name: 'Alice' },
    { id: 'b', name: null },
  ];
  const found = (text: string) => matching(rows, text, ({ id, name }) => [id, name]).map(({ id }) => id);
  expect(['', ' ALICE ', 'b', 'none'].map(found)).toEqual([['a', 'b'], ['a'], ['b'], []]);
});

test('a user is named by an account that is no wallet', () => {
  const wallet = { type: 'wallet', address: '0xAb', chain_type: 'ethereum' } as LinkedAccount;
  const oauth = { type: 'discord_oauth', email: null, username: 'al', subject: '1' } as LinkedAccount;
  const passkey = { type: 'passkey', credential_id: 'c1', public_key: 'k' } as LinkedAccount;
  expect([wallet, oauth, passkey].map(accountText)).toEqual([
    'wallet 0xAb on ethereum',
    'discord oauth al',
    'passkey c1',
  ]);
  expect(userText({ id: 'u1', linked_accounts: [wallet, oauth] })).toBe('discord oauth al');
  expect(userText({ id: 'u1', linked_accounts: [wallet] })).toBe('wallet 0xAb on ethereum');
});

test('a snapshot is named after its file', () => {
  const names = ['funded.snapshot', 'Funded (1).SNAPSHOT', '..ä.snapshot', '.snapshot', `${'a'.repeat(70)}`];
  expect(names.map(nameOfFile)).toEqual(['funded', 'funded-1', 'uploaded', 'uploaded', 'a'.repeat(64)]);
});

test('coverage is a share, and 100 % means all', () => {
  expect(shareText({ covered: 0, total: 0 })).toBe('0 of 0, 100 %');
  expect(shareText({ covered: 1999, total: 2000 })).toBe('1999 of 2000, 99.9 %');
});

test('operations are shown by requests, called or not', () => {
  const operations = [
    { operation: 'getWallet', requests: 1, covered: 1, total: 9, statuses: {} },
    { operation: 'createWallet', requests: 5, covered: 2, total: 9, statuses: {} },
    { operation: 'listUsers', requests: 0, covered: 0, total: 9, statuses: {} },
  ];
  const shown = (text: string, which: string) =>
    shownOperations(operations, { text, which }).map(({ operation }) => operation);
  expect(shown('', 'called')).toEqual(['createWallet', 'getWallet']);
  expect(shown('', 'not called')).toEqual(['listUsers']);
  expect(shown(' WALLET ', 'all')).toEqual(['createWallet', 'getWallet']);
});

test('a mark of the clock says what becomes due, and when', () => {
  const mark = {
    at_ms: 259_200_000,
    at: '1970-01-04T00:00:00.000Z',
    kind: 'intent_expires',
    app_id: 'a',
    resource_id: 'i',
  } as const;
  expect(markText(mark, 0)).toBe('intent expires in 3 d, 1970-01-04 00:00:00.000 UTC');
});
