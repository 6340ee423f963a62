import { expect, test } from 'vitest';
import { type ContractDocument, combinationsOf } from '../../../src/tools/contract/contract-document.ts';
import { parseGaps } from '../../../src/tools/coverage/judge.ts';
import { faultsOf, figures, filesByCombination, judge } from '../../ledger/ledger.ts';

const refusals = (...codes: [code: string, isSent: boolean][]) => ({
  content: {
    'application/json': {
      examples: Object.fromEntries(
        codes.map(([code, isSent]) => [code, { value: { error: 'no', ...(isSent ? { code } : {}) } }]),
      ),
    },
  },
});

const document: ContractDocument = {
  paths: {
    '/v1/wallets': {
      post: {
        operationId: 'createWallet',
        responses: { 200: {}, 400: refusals(['invalid_data', true], ['request_expired', true]) },
      },
    },
    '/v1/wallets/{wallet_id}': {
      get: { operationId: 'getWallet', responses: { 200: {}, 404: refusals(['not_found', false]) } },
    },
  },
  webhooks: { 'wallet.created': {}, 'wallet.archived': {} },
};
const documented = combinationsOf(document);

const ledger = {
  'a.test.ts': ['createWallet 200', 'createWallet 400 invalid_data', 'event wallet.created', 'getWallet 404'],
  'b.test.ts': ['createWallet 200'],
};

test('the document has each status, each error code of a status and each event', () => {
  expect(documented.map(({ name }) => name)).toEqual([
    'createWallet 200',
    'createWallet 400 invalid_data',
    'createWallet 400 request_expired',
    'getWallet 200',
    'getWallet 404 not_found',
    'event wallet.created',
    'event wallet.archived',
  ]);
});

test('a combination is covered by the test files that have seen it', () => {
  const files = filesByCombination(documented, ledger);
  expect(files.get('createWallet 200')).toEqual(['a.test.ts', 'b.test.ts']);
  // The code `not_found` is not sent; it is recorded as a 404 without a code.
  expect(files.get('getWallet 404 not_found')).toEqual(['a.test.ts']);
  expect(files.get('getWallet 200')).toEqual([]);
});

test('the figures count a status once, whatever its codes', () => {
  expect(figures(documented, ledger)).toEqual([
    'statuses of operations  3 of 4 (75.0 %)',
    'error codes             2 of 3 (66.7 %)',
    'webhook events          1 of 2 (50.0 %)',
    'gaps left               3',
  ]);
});

test('the list of gaps has one combination on each line, and a reason', () => {
  const text = '# all of them\n\ngetWallet 200  # not built\nevent wallet.archived\n';
  expect(parseGaps(text)).toEqual([
    { name: 'getWallet 200', reason: 'not built' },
    { name: 'event wallet.archived', reason: '' },
  ]);
});

test('a gap that is not listed, and a listed one that is exercised, are faults', () => {
  const gaps = parseGaps('getWallet 200\ncreateWallet 200\nevent wallet.archived\n');
  const judgement = judge(documented, ledger, gaps);
  expect(judgement).toEqual({
    unlisted: ['createWallet 400 request_expired'],
    closed: ['createWallet 200'],
    undocumented: [],
  });
  expect(faultsOf(judgement).filter((line) => line.startsWith('  '))).toEqual([
    '  createWallet 400 request_expired',
    '  createWallet 200',
  ]);
  const agreeing = parseGaps('getWallet 200\ncreateWallet 400 request_expired\nevent wallet.archived\n');
  expect(faultsOf(judge(documented, ledger, agreeing))).toEqual([]);
});

test('an undocumented response is a fault; a branded code and an invented event are not', () => {
  const seen = [
    'getWallet 409 resource_conflict',
    'getWallet 500',
    'getWallet 400 missing_or_invalid_acme_app_id',
    'event t',
  ];
  expect(judge(documented, { 'a.test.ts': seen }, []).undocumented).toEqual([
    'getWallet 409 resource_conflict',
    'getWallet 500',
  ]);
});
