import { expect, test } from 'vitest';
import { operations } from '../../../src/generated/operations.ts';
import { requestRecord } from '../../../src/server/audit.ts';
import type { RequestState } from '../../../src/server/request-state.ts';

const walletId = 'fmfdj6yqly31huorjqzq38zc';
const state = {
  ...{ id: 'request', method: 'POST', target: '/', rawBody: Buffer.alloc(0), headers: {}, nowMs: 1 },
  route: { operation: operations.createFiatDepositAccount, params: { wallet_id: walletId } },
  body: { provider: 'bridge', source: { currency: 'eur' } },
} as unknown as RequestState;
const audit = { digest: () => 'digest' };

test('a record names the resource that the response wraps, and nothing else of it', () => {
  const body = { fiat_deposit_account: { id: 'cjq9u66m8c2tr6xu1lmg7xmy7', iban: 'DE89370400440532013000' } };
  expect(requestRecord(state, audit, { status: 200, decision: 'allow', body }).ids).toEqual({
    wallet_id: walletId,
    fiat_deposit_account_id: 'cjq9u66m8c2tr6xu1lmg7xmy7',
  });
});

test('a wrapped id that is not one of ours could be personal data, and is left out', () => {
  const body = { account: { id: 'alice@example.com' }, none: null };
  expect(requestRecord(state, audit, { status: 200, decision: 'allow', body }).ids).toEqual({
    wallet_id: walletId,
  });
});
