import { describe, expect, test } from 'vitest';
import { faultRequest, formFields, hitsText, selectionText } from '../../../src/inspector/faults/draft.ts';
import { resourceHref } from '../../../src/inspector/scenarios/resource-href.ts';
import { savedText, sizeText } from '../../../src/inspector/snapshots/snapshot-text.ts';
import type { SandboxFault } from '../../../src/sandbox/generated/schemas.ts';

describe('a fault rule', () => {
  test('is what was typed for its effect; texts of other effects are left out', () => {
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

  test('has numbers where numbers are expected', () => {
    expect(() => faultRequest('latency', { delay_ms: '2s' })).toThrow(
      'Delay (ms): expected a number, got `2s`',
    );
    expect(() => faultRequest('latency', { count: 'NaN' })).toThrow('expected a number, got `NaN`');
  });

  test('offers the fields of its effect', () => {
    expect(formFields('webhook_duplicate')).toEqual([
      'event_type',
      'app_id',
      'wallet_id',
      'probability',
      'count',
    ]);
  });

  test('is described by what it selects and how often it has applied', () => {
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
  expect(resourceHref({ type: 'key_quorum', id: 'q1' })).toBeUndefined();
});
