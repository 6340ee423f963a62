import { expect, test } from 'vitest';
import { createContract } from '../../../src/server/contract.ts';
import type { HttpExchange, RunOperation } from '../../../src/server/http-exchange.ts';
import { appHeaders, echo, toyApp, toyOperations, toyValidators } from './toy-server.ts';

// Each test covers a part of openapi-backend 5.21 that is replaced or must be provided: its default would let a
// request through or answer it differently.

const app = { id: toyApp.id };

async function answerTo(
  method: string,
  target: string,
  { body, isKnown = true, run = echo }: { body?: string; isKnown?: boolean; run?: RunOperation } = {},
): Promise<unknown> {
  const contract = await createContract({ operations: toyOperations, validators: toyValidators, run });
  const path = target.split('?')[0]!;
  const exchange = {
    id: 'request-1',
    method,
    target,
    path,
    headers: { ...appHeaders, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    rawBody: Buffer.from(body ?? ''),
    route: contract.match({ method, path }),
    app: isKnown ? app : undefined,
  } as unknown as HttpExchange;
  return contract.handle(exchange);
}

test('matchOperation: the radix index finds the operation, its parameters are decoded', async () => {
  expect(await answerTo('GET', '/v1/toys/a%20bear')).toEqual({
    status: 200,
    body: {
      operation: 'getToy',
      path: { toy_id: 'a bear' },
      query: {},
      body: undefined,
      app,
      userId: undefined,
    },
  });
});

test('notFound: no operation is run for an unknown path', async () => {
  await expect(answerTo('GET', '/v1/games')).rejects.toMatchObject({
    code: 'not_found',
    message: 'Not found',
  });
});

test('methodNotAllowed: the methods of the path are named', async () => {
  await expect(answerTo('PATCH', '/v1/toys/bear')).rejects.toMatchObject({
    code: 'method_not_allowed',
    headers: { allow: 'DELETE, GET, HEAD' },
  });
});

test('validationFail: an invalid request does not reach its operation', async () => {
  const run = () => expect.unreachable('the operation was run');
  await expect(answerTo('POST', '/v1/toys', { body: '{"name":""}', run })).rejects.toMatchObject({
    code: 'invalid_data',
    message: '/name: must have at least 1 character',
  });
});

test('validateRequest: query values are coerced, bodies are not', async () => {
  expect(await answerTo('GET', '/v1/toys?limit=7&tags=red&unknown=x')).toMatchObject({
    body: { query: { limit: 7, tags: ['red'], unknown: 'x' } },
  });
  await expect(answerTo('POST', '/v1/toys', { body: '{"name":7}' })).rejects.toMatchObject({
    message: '/name: must be a string',
  });
});

test('parseRequest: the body reaches the operation as it was parsed once', async () => {
  const body = '{"name":"bear","note":{"1":[null,1.50]}}';
  expect(await answerTo('POST', '/v1/toys', { body })).toMatchObject({ body: { body: JSON.parse(body) } });
});

test('unauthorizedHandler: a request that passed no credentials check does not reach its operation', async () => {
  const run = () => expect.unreachable('the operation was run');
  await expect(answerTo('GET', '/v1/toys', { isKnown: false, run })).rejects.toMatchObject({
    code: 'missing_or_invalid_token',
  });
});

test('security: a public operation requires no credentials', async () => {
  expect(await answerTo('GET', '/v1/catalogue.json', { isKnown: false })).toMatchObject({ status: 200 });
});

test('an error of the operation is rethrown, not swallowed', async () => {
  const bug = new Error('bug');
  const run = () => Promise.reject(bug);
  await expect(answerTo('GET', '/v1/toys', { run })).rejects.toBe(bug);
});
