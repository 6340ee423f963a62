import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sampleLanguages } from '../../../src/web/docs/code-samples.ts';
import { composeRequest, firstValue, sampleOf, withIds } from '../../../src/web/docs/compose-request.ts';
import { operationIn } from '../../../src/web/docs/navigation.ts';
import type { OperationDocument } from '../../../src/web/docs/operation-document.ts';
import { createSearch, type SearchEntry } from '../../../src/web/docs/search.ts';
import { canonicalJson } from '../../../src/web/docs/sign-payload.ts';

test('canonical JSON equals that of a library', () => {
  fc.assert(fc.property(fc.jsonValue(), (value) => canonicalJson(value) === canonicalize(value)));
  expect(canonicalJson({ b: undefined, a: 1 })).toBe('{"a":1}');
});

const parameter = (name: string, place: 'path' | 'query' | 'header', required = true) => ({
  ...{ name, in: place, required },
  ...{ schema: { type: 'string' }, example: `example of ${name}` },
});

const operation: OperationDocument = {
  ...{ id: 'renameThing', tag: 'things', method: 'PATCH', path: '/v1/things/{thing_id}', summary: 'Rename' },
  security: ['appCredentials'],
  parameters: [
    parameter('thing_id', 'path'),
    parameter('acme-app-id', 'header'),
    parameter('acme-idempotency-key', 'header', false),
    parameter('cursor', 'query', false),
    parameter('limit', 'query', false),
  ],
  requestBody: { content: { 'application/json': {} } },
  ...{ responses: {}, schemas: {} },
};

const filled = {
  parameters: { thing_id: 'a/b', cursor: '', limit: '1 0', 'acme-idempotency-key': 'k' },
  body: '{ "name": "Zoë\'s" }',
  ...{ appId: 'app', appSecret: 'pässword', userToken: '' },
};
const server = { origin: 'https://127.0.0.1:4010', prefix: 'acme' };

test('a request has the parameters that are filled in, and a payload over what it sends', () => {
  const request = composeRequest(operation, filled, server);
  const url = 'https://127.0.0.1:4010/v1/things/a%2Fb?limit=1+0';
  expect(request).toEqual({
    ...{ method: 'PATCH', url, body: '{"name":"Zoë\'s"}' },
    headers: {
      'acme-app-id': 'app',
      'acme-idempotency-key': 'k',
      authorization: `Basic ${Buffer.from('app:pässword').toString('base64')}`,
      'content-type': 'application/json',
    },
    payload: canonicalize({
      ...{ version: 1, method: 'PATCH', url, body: { name: "Zoë's" } },
      headers: { 'acme-app-id': 'app', 'acme-idempotency-key': 'k' },
    }),
  });
});

const settings = {
  ...{ prefix: 'acme', signers: [], ids: {}, origin: server.origin, caFile: '.custos/ca.pem' },
  credentials: { appId: 'app', appSecret: 'pässword' },
};

test('curl has the parameters, the body and the published secret', () => {
  const sample = sampleOf(operation, filled, settings, []);
  expect(sampleLanguages[0]?.write(sample)).toBe(`APP_ID='app'
APP_SECRET='pässword'
curl --cacert .custos/ca.pem -X PATCH 'https://127.0.0.1:4010/v1/things/a%2Fb?limit=1+0' \\
  -u "$APP_ID:$APP_SECRET" \\
  -H "acme-app-id: $APP_ID" \\
  -H 'acme-idempotency-key: k' \\
  -H 'content-type: application/json' \\
  -d '{"name":"Zoë'\\''s"}'`);
});

test('no sample contains a secret that is not published', () => {
  for (const { write, id } of sampleLanguages) {
    const own = sampleOf(operation, { ...filled, appSecret: 'our own secret' }, settings, ['alice.pem']);
    const user = sampleOf(operation, { ...filled, userToken: 'our own token' }, settings, ['alice.pem']);
    expect([id, write(own)]).toEqual([id, expect.stringContaining('APP_SECRET')]);
    expect([id, write(user)]).toEqual([id, expect.stringContaining('USER_TOKEN')]);
    expect(write(own) + write(user)).not.toMatch(/our own/);
  }
});

test('a user token replaces the secret, and a form is sent as a form', () => {
  const form = { ...operation, requestBody: { content: { 'application/x-www-form-urlencoded': {} } } };
  const { headers, body } = composeRequest(
    form,
    { ...filled, userToken: 'jwt', body: '{"a":"1 &"}' },
    server,
  );
  expect(headers).toMatchObject({
    authorization: 'Bearer jwt',
    'content-type': 'application/x-www-form-urlencoded',
  });
  expect(body).toBe('a=1+%26');
});

test('a body that is no JSON is refused', () => {
  expect(() => composeRequest(operation, { ...filled, body: '{' }, server)).toThrow(SyntaxError);
});

test('required parameters begin with an id that exists or the example; optional ones are empty', () => {
  const settings = { prefix: 'acme', signers: [], ids: { thing_id: 'own' } };
  expect(operation.parameters.map((each) => firstValue(each, settings))).toEqual([
    ...['own', 'example of acme-app-id', '', '', ''],
  ]);
});

test('examples get ids that exist, and keep the rest', () => {
  const ids = { policy_id: 'p1', wallet_id: 'w1' };
  expect(
    withIds({ policy_ids: ['x', 'y'], a: [{ wallet_id: 'z' }], wallet_ids: [], policy_id: null }, ids),
  ).toEqual({
    ...{ policy_ids: ['p1'], a: [{ wallet_id: 'w1' }], wallet_ids: [], policy_id: null },
  });
});

const entry = (title: string, text: string, kind: SearchEntry['kind'] = 'guide'): SearchEntry => ({
  ...{ kind, title, text },
  ...{ href: `#/${title}`, place: '' },
});

const search = createSearch([
  entry('Retries of webhooks', 'An endpoint that fails gets the event again.'),
  entry('Create a policy', 'Rules and conditions', 'operation'),
  entry('policy_violation', 'A policy denied the request.', 'error'),
  entry('Backups', 'The schedule of a retry is not in a backup. Policies are.'),
]);
const titlesOf = (text: string) => search(text).map((found) => found.entry.title);

test('the search ranks titles above texts, in any form of the word', () => {
  expect(titlesOf('retry')).toEqual(['Retries of webhooks', 'Backups']);
  expect(titlesOf('policies')).toEqual(
    expect.arrayContaining(['Create a policy', 'policy_violation', 'Backups']),
  );
  expect(titlesOf('policies').at(-1)).toBe('Backups');
  expect(titlesOf('violation')[0]).toBe('policy_violation');
  expect(titlesOf('create POLICY')).toEqual(['Create a policy']);
  expect(titlesOf('webhoks')[0]).toBe('Retries of webhooks');
  expect(titlesOf('zebra')).toEqual([]);
});

test('the search marks what it found, in the title and in the text around the first match', () => {
  const [found] = search('denied');
  expect(found?.excerpt).toEqual([
    { text: 'A policy ', isMatch: false },
    { text: 'denied', isMatch: true },
    { text: ' the request.', isMatch: false },
  ]);
  expect(search('webhook')[0]?.title.filter(({ isMatch }) => isMatch)).toEqual([
    { text: 'webhooks', isMatch: true },
  ]);
});

test('links to operations keep the form that they had', () => {
  expect(operationIn('#/wallets/walletRpc')).toBe('walletRpc');
  expect(operationIn('#/key_quorums/createKeyQuorum')).toBe('createKeyQuorum');
  expect(['', '#contents', '#/wallets', '#/wallets/../x'].map(operationIn)).toEqual(Array(4).fill(undefined));
});
