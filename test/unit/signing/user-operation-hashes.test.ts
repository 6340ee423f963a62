import { toHex } from 'viem';
import { describe, expect, test } from 'vitest';
import { hashUserOperation } from '../../../src/engine/signing/ethereum/user-operation.ts';

// Recorded from `getUserOpHash` of the entry points' bytecode (@account-abstraction/contracts 0.8.0 and 0.9.0-rc.1) on
// anvil at the addresses below, chain 8453.

const v08 = '0x4337084D9E255Ff0702461CF8895CE9E3b5Ff108';
const v09 = '0x433709009B8330FDa32311DF1C2AFA402eD8D009';
const operation = {
  sender: '0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F',
  nonce: '0x1',
  call_data: `0xb61d27f6${'00'.repeat(96)}`,
  call_gas_limit: '0x5208',
  verification_gas_limit: '0x186a0',
  pre_verification_gas: '0xc350',
  max_fee_per_gas: '0x3b9aca00',
  max_priority_fee_per_gas: '0xf4240',
};
const magic = '22e325a297439656';
const paidBy = (data: string) => ({
  paymaster: `0x${'33'.repeat(20)}`,
  paymaster_verification_gas_limit: '0x1111',
  paymaster_post_op_gas_limit: '0x2222',
  paymaster_data: `0x${data}`,
});
const made = { factory: `0x${'44'.repeat(20)}`, factory_data: '0xdeadbeef' };
const hashOf = (contract: string, more: object) =>
  toHex(hashUserOperation({ contract, chain_id: 8453, user_operation: { ...operation, ...more } }).hash);

test.each([
  ['nothing', {}, '0xfb6c563042c2009932c949a49fc950f4254c22fff1cc1c777eb123180afd0724'],
  ['a factory', made, '0xe26c6fe69a6a4309ef265fb0f67b4ac9cf3513b965dfa8fee11bb37005bf3589'],
  ['no data', paidBy(''), '0x40126b2fdef197806e71bb8dea0bf1eb9a995d7b0c16093c1f96494a18f4f428'],
  ['data', paidBy('abcdef'), '0x42759a0764d706bb4d633984a197be4742ad966fad035eb09f66ed7b5f758941'],
  [
    'data like a signature',
    paidBy(`abcdef${'5a'.repeat(65)}0041${magic}`),
    '0x98fdaf9a3552f4d0155e72775205f9cce5cb713a1f0555f6d5d37efac5eb7ba1',
  ],
  [
    'only the magic number',
    paidBy(magic),
    '0x124eb2969b0fe89f2e7ad738fd14520b7377dbdc725d429b638331c472fcac7f',
  ],
])('entry point 0.8 hashes an operation with %s', (_what, more, expected) => {
  expect(hashOf(v08, more)).toBe(expected);
});

describe('entry point 0.9', () => {
  const signed = '0x17482cf1eb8c887199922686f3dc10909dcc8507ade84e13bc8cecf2a0581230';
  const onlySigned = '0xbaf320d430b73e38bd3bf3852894981e49353b1f1f04e58376297f4fb029e7c7';

  test.each([
    ['nothing', {}, '0xdab5d9aff16f3b54dfc11c3bb1e46ba808f0dec6d3e81ccb614b51376d169972'],
    ['a factory', made, '0x8689f0027f6faddb8513bdee30f06d926cc13d62f6bfd938543c27a0b21aaf25'],
    ['no data', paidBy(''), '0x43114ab6e2463c76170c7978172226a5a04853ab357f68e8eb94e433929e5a0f'],
    ['data', paidBy('abcdef'), '0x3e48859d0d7bb8271880689d6a63b940de9d6c8a1533c52edf68942203c9c2e5'],
    ['a signature', paidBy(`abcdef${'5a'.repeat(65)}0041${magic}`), signed],
    ['another signature', paidBy(`ABCDEF${'6B'.repeat(65)}0041${magic}`), signed],
    ['only a signature', paidBy(`${'5a'.repeat(65)}0041${magic}`), onlySigned],
    ['only a signature of 300 bytes', paidBy(`${'77'.repeat(300)}012c${magic}`), onlySigned],
    ['only the magic number', paidBy(magic), onlySigned],
    [
      'an empty signature',
      paidBy(`abcdef0000${magic}`),
      '0x2df83889939c83bcc493f307c00c3bd7b8b0de1145600dd4fd56e357a51741ca',
    ],
    [
      'half a length',
      paidBy(`ab${magic}`),
      '0x25759a5b3f32d59750109475a964237e69af41ba79768f90a01b85ca03372279',
    ],
  ])('hashes an operation with %s of the paymaster', (_what, more, expected) => {
    expect(hashOf(v09, more)).toBe(expected);
  });

  test('entry point 0.9: refuses a paymaster signature that is longer than the data, as the contract does', () => {
    expect(() => hashOf(v09, paidBy(`abcdef0004${magic}`))).toThrow(/at most 3 bytes/);
  });
});

describe('the EIP-7702 marker as a factory', () => {
  const marker = `0x7702${'00'.repeat(18)}`;

  test.each([v08, v09])(
    'the EIP-7702 marker as a factory is refused for %s, which hashes the delegate in its place',
    (contract) => {
      for (const more of [{}, { factory_data: '0x' }, { factory_data: '0xdeadbeef' }]) {
        expect(() => hashOf(contract, { factory: marker, ...more })).toThrow(/EIP-7702 marker/);
      }
      expect(hashOf(contract, { factory: `0x7702${'00'.repeat(17)}01` })).toMatch(/^0x/);
    },
  );

  test.each(['0x5FF137D4b0FDCD49DcA30c7CF57E578a026d2789', '0x0000000071727De22E5E9d8BAf0edAc6f37da032'])(
    'the EIP-7702 marker as a factory is an address for %s, which does not know it',
    (contract) => {
      const hashes = ['0x', '0xdeadbeef'].map((factory_data) =>
        hashOf(contract, { factory: marker, factory_data }),
      );
      expect(new Set(hashes).size).toBe(2);
    },
  );
});
