import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { createTransportGuard } from '../../../src/server/transport-guards.ts';

function from(
  remoteAddress: string,
  headers: Record<string, string> = {},
  encrypted = false,
): IncomingMessage {
  return { headers, socket: { remoteAddress, encrypted } } as unknown as IncomingMessage;
}

test.each(['127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1'])(
  'plain HTTP from %s is from this machine',
  (address) => {
    const guard = createTransportGuard({ plainHttp: true, trustedProxies: [] });
    expect(guard.scheme(from(address))).toBe('http');
  },
);

test.each(['10.0.0.1', '192.168.0.1', '::2', 'fe80::1', '::ffff:10.0.0.1', '128.0.0.1'])(
  'plain HTTP from %s is not from this machine and is refused',
  (address) => {
    const guard = createTransportGuard({ plainHttp: true, trustedProxies: [] });
    expect(() => guard.scheme(from(address))).toThrow('HTTPS is required.');
  },
);

test('TLS is accepted from anywhere', () => {
  const guard = createTransportGuard({ plainHttp: false, trustedProxies: [] });
  expect(guard.scheme(from('203.0.113.7', {}, true))).toBe('https');
});

test.each([
  ['10.0.0.0/8', '10.9.8.7', true],
  ['10.0.0.0/8', '::ffff:10.9.8.7', true],
  ['10.0.0.0/8', '11.0.0.1', false],
  ['fd00::/8', 'fd00::5', true],
  ['fd00::/8', 'fe00::5', false],
  ['203.0.113.7', '203.0.113.7', true],
  ['203.0.113.7', '203.0.113.8', false],
])('with %s trusted, headers of %s count: %s', (proxy, address, isBelieved) => {
  const guard = createTransportGuard({ plainHttp: false, trustedProxies: [proxy] });
  const request = from(address, { 'x-forwarded-proto': 'https', 'x-forwarded-for': 'forged, 198.51.100.4' });
  if (isBelieved) expect(guard.scheme(request)).toBe('https');
  else expect(() => guard.scheme(request)).toThrow('HTTPS is required.');
  expect(guard.clientAddress(request)).toBe(isBelieved ? '198.51.100.4' : address);
});
