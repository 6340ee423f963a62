import { describe, expect, test } from 'vitest';
import { type Exchange, readArchive } from '../../../src/tools/coverage/archive.ts';
import { baselineOf, figuresOf, judgeCoverage } from '../../../src/tools/coverage/judge.ts';
import { measure } from '../../../src/tools/coverage/measure.ts';
import {
  coverageHtml,
  coverageMarkdown,
  coverageReport,
  coverageText,
} from '../../../src/tools/coverage/report.ts';
import { junitOf, sarifOf } from '../../../src/tools/reports.ts';
import { readDocument } from '../../ledger/documented.ts';

const document = readDocument();

/** An entry as browsers and proxies write it. */
const entry = (
  method: string,
  path: string,
  { sent, status, body, headers = {}, ...more }: Record<string, unknown> & { status: number },
) => ({
  request: {
    method,
    url: `https://wallets.example.com${path}`,
    headers: Object.entries(headers as object).map(([name, value]) => ({ name, value })),
    ...(sent === undefined ? {} : { postData: { mimeType: 'application/json', text: JSON.stringify(sent) } }),
  },
  response: { status, headers: [], content: { mimeType: 'application/json', text: JSON.stringify(body) } },
  ...more,
});

const archiveOf = (...entries: object[]): Exchange[] =>
  readArchive(JSON.stringify({ log: { version: '1.2', entries } }), 'test.har');
const measured = (...entries: object[]) => measure(document, { exchanges: archiveOf(...entries) });
const covered = (...entries: object[]) =>
  measured(...entries)
    .rows.filter(({ count }) => count > 0)
    .map(({ name }) => name);

describe('an exchange covers', () => {
  test('its operation, its status and the branches of both bodies', () => {
    const sent = { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } };
    const body = { method: 'personal_sign', data: { signature: '0x', encoding: 'hex' } };
    expect(covered(entry('POST', '/v1/wallets/w/rpc', { sent, status: 200, body }))).toEqual([
      'operation walletRpc',
      'walletRpc 200',
      'walletRpc request WalletRpcRequest.method=personal_sign',
      'walletRpc response WalletRpcResponse.method=personal_sign',
    ]);
  });

  test('its error code, and no branch of a body that is not valid', () => {
    const refused = { status: 400, body: { error: 'no', code: 'invalid_data' } };
    const sent = { method: 'personal_sign' };
    expect(covered(entry('POST', '/v1/wallets/w/rpc', { sent, ...refused }))).toEqual([
      'operation walletRpc',
      'walletRpc 400',
      'walletRpc 400 invalid_data',
    ]);
    const absent = entry('GET', '/api/v1/wallets/w?x=1', {
      status: 404,
      body: { error: 'Wallet not found' },
    });
    expect(covered(absent)).toContain('getWallet 404 not_found');
  });

  test('the names of the contract when the client uses another prefix', () => {
    const headers = { 'Acme-App-Id': 'x' };
    const body = { error: 'no', code: 'missing_or_invalid_acme_app_id' };
    expect(covered(entry('GET', '/v1/wallets/w', { status: 400, body, headers }))).toContain(
      'getWallet 400 missing_or_invalid_service_app_id',
    );
  });

  test('decisions of policies and quorums', () => {
    const ok = { status: 200, body: {}, _allowedBy: ['p'], _authorizedBy: ['key 1', 'key 2'] };
    const outcomes = (more: Record<string, unknown> & { status: number }) =>
      covered(entry('POST', '/v1/wallets/w/rpc', more)).filter((name) => /^(policy|quorum) /.test(name));
    expect(outcomes(ok)).toEqual(['policy allowed', 'quorum met_by_several_keys']);
    const headers = { 'service-authorization-signature': '[removed]' };
    expect(outcomes({ status: 200, body: {}, headers })).toEqual(['quorum met_by_one_key']);
    const denied = {
      status: 400,
      body: { code: 'policy_violation' },
      _why: { evidence: { outcome: 'denied_by_rule' } },
    };
    expect(outcomes(denied)).toEqual(['policy denied_by_rule']);
    const unsigned = { status: 401, body: { code: 'missing_or_empty_authorization_header' } };
    expect(outcomes(unsigned)).toEqual(['quorum unsigned']);
  });

  test('events that it caused, and deliveries to an endpoint that were acknowledged', () => {
    const caused = { status: 200, body: {}, _events: [{ id: 'msg_1', type: 'wallet.archived' }] };
    const delivery = (type: string, status: number) =>
      entry('POST', '/hook', { sent: { type }, status, body: '', headers: { 'webhook-id': 'msg_1' } });
    const seen = covered(
      entry('POST', '/v1/wallets/w/archive', caused),
      delivery('wallet.restored', 500),
      delivery('user.created', 204),
    );
    expect(seen.filter((name) => /^(event|acknowledged) /.test(name))).toEqual([
      'event user.created',
      'event wallet.archived',
      'event wallet.restored',
      'acknowledged user.created',
    ]);
  });
});

test('answers that the contract does not document, and unknown paths, are counted apart', () => {
  const result = measured(
    entry('GET', '/v1/wallets/w', { status: 418, body: {} }),
    entry('GET', '/v1/nothing', { status: 404, body: {} }),
    entry('GET', '/v1/wallets/%', { status: 400, body: {} }),
  );
  expect([...result.undocumented]).toEqual([['getWallet 418', 1]]);
  expect(result).toMatchObject({ requests: 3, unknownRequests: 2 });
});

describe('an archive', () => {
  test('an archive is refused if it is something else', () => {
    expect(() => readArchive('{', 'a.har')).toThrow(
      'a.har: expected an HTTP Archive (HAR), got text that is',
    );
    expect(() => readArchive('{"log":{}}', 'a.har')).toThrow(
      'a.har: expected an HTTP Archive with `log.entries`',
    );
  });

  test('an archive may contain aborted requests, other bodies and base64', () => {
    const text = Buffer.from('{"code":"x"}').toString('base64');
    const read = archiveOf(
      {
        request: { method: 'get', url: 'https://a/b?c' },
        response: { status: 200, content: { text, encoding: 'base64' } },
      },
      { request: { method: 'GET', url: 'https://a/b' }, response: { status: 0 } },
      {
        request: { method: 'GET', url: 'https://a/b' },
        response: { status: 200, content: { text: '<html>' } },
      },
      {},
    );
    expect(read.map(({ method, path, responseBody }) => ({ method, path, responseBody }))).toEqual([
      { method: 'GET', path: '/b', responseBody: { code: 'x' } },
      { method: 'GET', path: '/b', responseBody: undefined },
    ]);
  });
});

describe('the verdict', () => {
  const result = measured(entry('GET', '/v1/wallets/w', { status: 200, body: {} }));
  const judge = (
    baseline: string | undefined,
    ...thresholds: Parameters<typeof judgeCoverage>[1]['thresholds']
  ) => judgeCoverage(result, { thresholds, baseline });

  test('the verdict compares shares with thresholds', () => {
    const { operations } = figuresOf(result);
    expect(operations).toMatchObject({
      covered: 1,
      total: Object.values(document.paths).flatMap(Object.values).length,
    });
    expect(judge(undefined, { dimension: 'operations', percent: operations.percent }).faults).toEqual([]);
    expect(judge(undefined, { dimension: 'operations', percent: 50 }).faults).toEqual([
      `operations called: expected at least 50 %, got ${operations.percent} %`,
    ]);
  });

  test('the verdict compares what is not covered with a baseline, which may only shrink', () => {
    const baseline = baselineOf(result);
    expect(judge(baseline)).toEqual({ scope: 'contract', faults: [], unlisted: [], closed: [] });
    expect(judge(`${baseline}getWallet 200  # covered by now\n`)).toMatchObject({
      closed: ['getWallet 200'],
    });
    expect(judge(baseline.replace('listWallets 200\n', ''))).toMatchObject({
      faults: ['1 not covered and not in the baseline'],
      unlisted: ['listWallets 200'],
    });
  });

  test('the figures of the operations that were called leave out what belongs to others', () => {
    const error = { status: 404, body: { error: 'Wallet not found' } };
    const both = measured(
      entry('GET', '/v1/wallets/w', { status: 200, body: {} }),
      entry('GET', '/v1/wallets/w', error),
      entry('GET', '/v1/users', { status: 401, body: { error: 'no', code: 'missing_or_invalid_token' } }),
    );
    const called = figuresOf(both, 'called');
    const ofCalled = (dimension: string) =>
      both.rows.filter(
        (row) =>
          row.dimension === dimension && (row.operation === 'getWallet' || row.operation === 'listUsers'),
      ).length;
    expect(called.errors).toMatchObject({ covered: 2, total: ofCalled('errors') });
    expect(called.statuses).toMatchObject({ covered: 3, total: ofCalled('statuses') });
    expect(called.operations).toEqual(figuresOf(both).operations);
    const verdict = judgeCoverage(both, {
      thresholds: [{ dimension: 'errors', percent: 90 }],
      baseline: undefined,
      scope: 'called',
    });
    expect(verdict.faults).toEqual([`error codes: expected at least 90 %, got ${called.errors.percent} %`]);
    expect(coverageText(both, verdict)).toMatch(/^Of the 2 operations that you call\n {2}statuses/);
    const html = coverageHtml(both, verdict);
    // The operation with more errors that were never met comes first, in the table and in the list.
    const left = (operation: string) =>
      both.rows.filter((row) => row.dimension === 'errors' && row.operation === operation && row.count === 0)
        .length;
    const [first, second] =
      left('getWallet') >= left('listUsers') ? ['getWallet', 'listUsers'] : ['listUsers', 'getWallet'];
    expect(html.indexOf(`<td><code>${first}</code></td>`)).toBeLessThan(
      html.indexOf(`<td><code>${second}</code></td>`),
    );
    expect(html).toContain(`<td class="number bad">${left(first!)}</td>`);
  });

  test('the verdict is in every report', () => {
    const verdict = judge(baselineOf(result).replace('listWallets 200\n', ''));
    const fault = '1 not covered and not in the baseline';
    expect(coverageText(result, verdict)).toContain(`Not sufficient:\n  ${fault}`);
    expect(coverageMarkdown(result, verdict)).toContain(`:x: ${fault}`);
    expect(coverageHtml(result, verdict)).toContain(`<p class="bad">${fault}</p>`);
    const report = coverageReport(result, verdict, '1.0.0');
    expect(junitOf(report)).toMatch(/failures="2"/);
    const [run] = (sarifOf(report) as { runs: { results: { level: string }[] }[] }).runs;
    expect(run!.results.filter(({ level }) => level === 'error')).toHaveLength(2);
  });
});
