import { describe, expect, test } from 'vitest';
import { operations } from '../../../src/generated/operations.ts';
import { createRouteIndex } from '../../../src/http/route-index.ts';

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
  ])('%s allows %j', (path, methods) => {
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
