import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { asCurl, composeRequest, firstValue, withIds } from '../../../src/web/docs/compose-request.ts';
import { matches, operationIn } from '../../../src/web/docs/navigation.ts';
import type { OperationDocument } from '../../../src/web/docs/operation-document.ts';
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
  expect(asCurl(request)).toBe(`curl --cacert .custos/ca.pem \\
  -X PATCH '${url}' \\
  -H 'acme-idempotency-key: k' \\
  -H 'acme-app-id: app' \\
  -u "$APP_ID:$APP_SECRET" \\
  -H 'content-type: application/json' \\
  -d '{"name":"Zoë'\\''s"}'`);
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

test('the search needs every word, in any order and case', () => {
  const entry = 'walletRpc POST /v1/wallets/{wallet_id}/rpc Sign or send with a wallet';
  expect(['rpc', 'SIGN wallet', 'post rpc', ''].filter((words) => matches(entry, words)).length).toBe(4);
  expect(matches(entry, 'sign policy')).toBe(false);
});

test('links to operations keep the form that they had', () => {
  expect(operationIn('#/wallets/walletRpc')).toBe('walletRpc');
  expect(operationIn('#/key_quorums/createKeyQuorum')).toBe('createKeyQuorum');
  expect(['', '#contents', '#/wallets', '#/wallets/../x'].map(operationIn)).toEqual(Array(4).fill(undefined));
});
