import fc from 'fast-check';
import createRouter from 'find-my-way';
import { describe, expect, test } from 'vitest';
import { operations } from '../../../src/generated/operations.ts';
import { createRouteIndex } from '../../../src/server/route-index.ts';

const routes = createRouteIndex(Object.values(operations));

function find(method: string, path: string): unknown {
  const route = routes.find(method, path);
  return route === undefined ? undefined : { id: route.operation.id, params: { ...route.params } };
}

test('every operation of the contract is found under its own path', () => {
  const found = Object.values(operations).map(({ method, path }) => {
    return routes.find(method, path.replaceAll(/\{([^}]+)\}/g, 'value-of-$1'))?.operation.id;
  });
  expect(found).toEqual(Object.keys(operations));
});

test.each([
  ['/v1/wallets/abc', 'abc'],
  ['/v1/wallets/abc/', 'abc'],
  ['/api/v1/wallets/abc', 'abc'],
  ['/v1/wallets/ext_wal_order-1', 'ext_wal_order-1'],
  ['/v1/wallets/a%20b%2Fc%25', 'a b/c%'],
  ['/v1/wallets/did:service:cabc', 'did:service:cabc'],
  ['/v1/wallets/%64id%3Aservice', 'did:service'],
])('GET %s names the wallet %s', (path, wallet_id) => {
  expect(find('GET', path)).toEqual({ id: 'getWallet', params: { wallet_id } });
});

test.each(['/v1/nothing', '/v1/wallets/a/b/c/d', '//v1/wallets', '/V1/wallets', '/api/wallets', '/v1', '/'])(
  'GET %s is not an operation',
  (path) => {
    expect(find('GET', path)).toBeUndefined();
    expect(routes.allowedMethods(path)).toEqual([]);
  },
);

describe('a known path under another method', () => {
  test.each([
    ['/v1/wallets', ['GET', 'POST']],
    ['/v1/wallets/abc', ['GET', 'PATCH']],
    ['/api/v1/wallets/', ['GET', 'POST']],
    ['/api/oauth/v2/token', ['POST']],
  ])('a known path under another method: %s allows %j', (path, methods) => {
    expect(find('TRACE', path)).toBeUndefined();
    expect(routes.allowedMethods(path)).toEqual(methods);
  });
});

test('a literal segment takes precedence over a parameter', () => {
  expect(find('POST', '/v1/wallets/batch')).toEqual({
    id: operationAt('POST', '/v1/wallets/batch'),
    params: {},
  });
});

function operationAt(method: string, path: string): string | undefined {
  return Object.values(operations).find((each) => each.method === method && each.path === path)?.id;
}

test.each(['/v1/wallets/%', '/v1/wallets/%zz', '/v1/wallets/%E0%A4%A'])(
  '%s is refused: broken encoding',
  (path) => {
    const message = 'invalid percent-encoding';
    expect(() => routes.find('GET', path)).toThrow(
      expect.objectContaining({
        code: 'invalid_data',
        message: `path: ${message}`,
        data: { issues: [{ in: 'path', pointer: '', message }] },
      }),
    );
  },
);

describe('as find-my-way', () => {
  const judge = createRouter({ caseSensitive: true, ignoreTrailingSlash: true, maxParamLength: 2048 });
  for (const { id, method, path } of Object.values(operations)) {
    judge.on(method as 'GET', path.replaceAll(/\{([^}]+)\}/g, ':$1'), () => {}, id);
  }
  const words = Object.values(operations).flatMap(({ path }) => path.split('/'));
  const segment = fc.oneof(
    fc.constantFrom(...words, 'batch', '', '.', '..', 'a'.repeat(2048), 'a'.repeat(2049)),
    fc.string({ maxLength: 5 }).map((text) => text.replaceAll(/[?#/]/g, '-')),
    fc.constantFrom('%20', '%2F', 'w%61llets', '%25', 'a%23b', 'é', 'x#y', 'x;y'),
  );
  const known = fc.constantFrom(...Object.values(operations).map(({ path }) => path)).chain((path) =>
    fc.array(segment, { minLength: 4, maxLength: 4 }).map((values) => {
      let at = 0;
      return path.replaceAll(/\{[^}]+\}/g, () => values[at++]!);
    }),
  );
  const path = fc.oneof(
    known,
    known.map((each) => `${each}/`),
    known.map((each) => `http://localhost:4010${each}`),
    fc.array(segment, { maxLength: 6 }).map((parts) => `/${parts.join('/')}`),
  );

  test('any path means the same operation and parameters', () => {
    fc.assert(
      fc.property(fc.constantFrom('GET', 'POST', 'PATCH', 'DELETE', 'PUT'), path, (method, target) => {
        fc.pre(isDecodable(target) && (target.startsWith('/') || !target.includes('#')));
        const expected = judge.find(method as 'GET', target);
        expect(find(method, target)).toEqual(
          expected === null ? undefined : { id: expected.store, params: { ...expected.params } },
        );
      }),
      { numRuns: 3000 },
    );
  });
});

function isDecodable(target: string): boolean {
  try {
    decodeURIComponent(target);
    return !target.startsWith('/api/v1/');
  } catch {
    return false;
  }
}
