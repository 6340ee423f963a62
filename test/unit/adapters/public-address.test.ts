import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { describe, expect, test } from 'vitest';
import { isPublicAddress } from '../../../src/adapters/webhook-http.ts';

describe('the first, the last and one other address of every block that is not public', () => {
  test.each([
    ['0.0.0.0', '0.255.255.255'],
    ['10.0.0.0', '10.255.255.255'],
    ['100.64.0.0', '100.127.255.255'],
    ['127.0.0.0', '127.255.255.255'],
    ['169.254.0.0', '169.254.169.254', '169.254.255.255'],
    ['172.16.0.0', '172.31.255.255'],
    ['192.0.0.0', '192.0.0.170', '192.0.0.255'],
    ['192.0.2.0', '192.0.2.255'],
    ['192.88.99.0', '192.88.99.255'],
    ['192.168.0.0', '192.168.255.255'],
    ['198.18.0.0', '198.19.255.255'],
    ['198.51.100.0', '198.51.100.255'],
    ['203.0.113.0', '203.0.113.255'],
    ['224.0.0.0', '239.255.255.255'],
    ['240.0.0.0', '255.255.255.255'],
    ['::', '::1', '::7f00:1'],
    ['::ffff:0.0.0.0', '::ffff:127.0.0.1', '::ffff:8.8.8.8', '::ffff:7f00:1'],
    ['64:ff9b::', '64:ff9b::7f00:1', '64:ff9b::808:808', '64:ff9b:1::1', '64:ff9b:1:ffff::a00:1'],
    ['100::', '100::1'],
    ['2001::', '2001:0:7f00:1::', '2001:2::1', '2001:10::1', '2001:20::1', '2001:1ff:ffff::1'],
    ['2001:db8::', '2001:db8:ffff::1'],
    ['2002::', '2002:7f00:1::', '2002:a00:1::1'],
    ['3fff::1', '3fff:fff:ffff::1'],
    ['4000::1', '5f00::1', 'e000::1'],
    ['fc00::', 'fd00:ec2::254', 'fdff:ffff::1'],
    ['fe80::', 'fe80::1%eth0', 'febf::1'],
    ['fec0::1', 'feff::1'],
    ['ff00::', 'ff02::1', 'ffff:ffff::1'],
  ])('the first, the last and one other address of every block that is not public: %s', (...addresses) => {
    expect(addresses.filter(isPublicAddress)).toEqual([]);
  });
});

test('the neighbours of these blocks are public', () => {
  const neighbours = [
    '1.0.0.0',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.0',
    '169.253.255.255',
    '169.255.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '192.167.255.255',
    '192.169.0.0',
    '198.17.255.255',
    '198.20.0.0',
    '223.255.255.255',
    '8.8.8.8',
    '2000::1',
    '2001:200::1',
    '2001:4860:4860::8888',
    '2001:db7::1',
    '2001:db9::1',
    '2003::1',
    '2606:4700::1111',
    '3ffe::1',
  ];
  expect(neighbours.filter((address) => !isPublicAddress(address))).toEqual([]);
});

test('an invalid address is not public', () => {
  for (const text of [
    '',
    'localhost',
    '127.1',
    '0x7f.0.0.1',
    '2130706433',
    '[::1]',
    '1.2.3.4.5',
    '8.8.8.8 ',
  ]) {
    expect(isPublicAddress(text), text).toBe(false);
  }
});

test('addresses that another library classifies as special are not public', () => {
  const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
  // Half of the addresses of each family are close to special blocks.
  const prefixes = [
    '::',
    '::ffff:0:0',
    '64:ff9b::',
    '2001::',
    '2002::',
    'fc00::',
    'fe80::',
    'ff00::',
    '2001:db8::',
  ];
  const near = fc.tuple(fc.constantFrom(...prefixes), bytes(4)).map(([prefix, tail]) => {
    const parsed = ipaddr.parse(prefix).toByteArray();
    return ipaddr.fromByteArray([...parsed.slice(0, 12), ...tail]);
  });
  const any = fc.oneof(bytes(4), bytes(16)).map((address) => ipaddr.fromByteArray([...address]));
  fc.assert(
    fc.property(fc.oneof(any, near), (address) => {
      if (address.range() !== 'unicast') expect(isPublicAddress(address.toString())).toBe(false);
    }),
    { numRuns: 5_000 },
  );
});
