import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { idempotencyKeys } from '../../../src/domain/base/idempotency/idempotency-keys.ts';
import { singleUseSignatures } from '../../../src/domain/base/replay-protection/single-use-signatures.ts';
import { publishedSafeguards } from '../../../src/domain/base/safeguards/safeguards.ts';
import { definition } from '../../../src/generated/definition.ts';
import { operations } from '../../../src/generated/operations.ts';
import { registry } from '../../../src/generated/registry.ts';
import { createNotes, type Services } from '../../../src/ports/operation-context.ts';
import { createContract, openCompiledBackend, requestOf } from '../../../src/server/contract.ts';
import type { RequestState } from '../../../src/server/request-state.ts';
import { createRouteIndex } from '../../../src/server/route-index.ts';
import { bindHandlers } from '../../../src/server/run-operation.ts';
import {
  appHeaders,
  definitionOf,
  echo,
  handlersOf,
  type Run,
  toyApp,
  toyOperations,
  toyValidators,
} from './toy-server.ts';

// Each test covers a part of openapi-backend 5.21 that is overridden or must be provided: its default would let a
// request through or answer it differently.

const app = { id: toyApp.id };

const toys = definitionOf(toyOperations);

async function answerTo(
  method: string,
  target: string,
  {
    body,
    isKnown = true,
    run = echo,
    document = toys,
    ofUser = {},
  }: {
    body?: string;
    isKnown?: boolean;
    run?: Run;
    document?: typeof toys;
    ofUser?: Partial<RequestState>;
  } = {},
): Promise<unknown> {
  const contract = await createContract({
    definition: document,
    operations: toyOperations,
    validators: toyValidators,
    handlers: handlersOf(toyOperations, run),
  });
  const path = target.split('?')[0]!;
  const state = {
    id: 'request-1',
    method,
    target,
    path,
    headers: { ...appHeaders, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    rawBody: Buffer.from(body ?? ''),
    route: contract.match({ method, path }),
    app: isKnown ? app : undefined,
    hasAppSecret: isKnown,
    ...ofUser,
  } as unknown as RequestState;
  return contract.backend.handleRequest(requestOf(state), state);
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

const userOf = (headers: Partial<RequestState['headers']>): Partial<RequestState> => ({
  hasAppSecret: false,
  userId: 'user-1',
  headers: { ...appHeaders, authorization: 'Bearer token', ...headers },
});

test('security: credentials suffice only if the document lists their scheme for the operation', async () => {
  const ofUser = userOf({});
  expect(await answerTo('POST', '/v1/toys/bear/play', { ofUser })).toMatchObject({
    body: { userId: 'user-1' },
  });
  await expect(answerTo('GET', '/v1/toys', { ofUser })).rejects.toMatchObject({
    code: 'missing_or_invalid_token',
  });

  const without = structuredClone(toys);
  without.paths!['/v1/toys/{toy_id}/play']!.post!.security = [{ appCredentials: [] }];
  await expect(answerTo('POST', '/v1/toys/bear/play', { ofUser, document: without })).rejects.toMatchObject({
    code: 'missing_or_invalid_token',
  });
  expect(await answerTo('POST', '/v1/toys/bear/play', { document: without })).toMatchObject({ status: 200 });
});

test('security: a document with a scheme that the server does not know is refused at the start', async () => {
  const document = structuredClone(toys);
  Object.assign(document.components!.securitySchemes!, { passkey: { type: 'http', scheme: 'passkey' } });
  await expect(answerTo('GET', '/v1/toys', { document })).rejects.toThrow('security scheme passkey');
});

test('router: an operation that the document does not define is not found', async () => {
  const document = structuredClone(toys);
  delete document.paths!['/v1/catalogue.json'];
  await expect(answerTo('GET', '/v1/catalogue.json', { document })).rejects.toThrow(
    'Unknown operationId getCatalogue',
  );
});

test('the server gives openapi-backend every operation and security scheme of the document', async () => {
  const document = JSON.parse(readFileSync('openapi/openapi.json', 'utf8')) as typeof definition;
  const backend = await openCompiledBackend({
    definition,
    routes: createRouteIndex(Object.values(operations)),
    validators: {},
  });

  const documented = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId, security = document.security }]) => ({
      ...{ operationId, method, path },
      security,
    })),
  );
  expect(documented.map(({ operationId }) => operationId).sort()).toEqual(Object.keys(registry).sort());
  expect(backend.getOperations()).toHaveLength(documented.length);
  for (const operation of documented)
    expect(backend.getOperation(operation.operationId)).toMatchObject(operation);
  expect(backend.definition.components?.securitySchemes).toEqual(document.components.securitySchemes);
});

test('the handlers of openapi-backend are the functions of src/api, each under its operationId', async () => {
  const called: string[] = [];
  // The registry has functions, and objects with a plan and a function.
  const marked = Object.fromEntries(
    Object.keys(registry).map((id) => [id, { run: async () => void called.push(id) }]),
  );
  const { backend } = await createContract({
    definition,
    operations: Object.values(operations),
    validators: {},
    handlers: bindHandlers(marked, {
      services: { keyStore: { isLocal: true } } as Services,
      openUnit: async () => ({
        ...{ em: {} as never, notes: createNotes(), watches: [] },
        commit: async () => undefined,
        rollback: async () => undefined,
      }),
      idempotency: idempotencyKeys(),
      singleUse: singleUseSignatures(publishedSafeguards),
      check: () => undefined,
    }),
  });
  for (const operation of Object.values(operations)) {
    const state = {
      ...{ id: 'request-1', response: { destroyed: false }, headers: {}, rawBody: Buffer.alloc(0) },
      ...{ route: { operation, params: {} }, proof: { signatures: [] } },
    } as unknown as RequestState;
    await backend.handlers[operation.id]!({} as never, state);
  }
  expect(called).toEqual(Object.keys(operations));
});

test('an error of the operation is rethrown, not swallowed', async () => {
  const bug = new Error('bug');
  const run = () => Promise.reject(bug);
  await expect(answerTo('GET', '/v1/toys', { run })).rejects.toBe(bug);
});
