import {
  type Address,
  concatHex,
  encodeAbiParameters,
  getContractAddress,
  type Hex,
  keccak256,
  pad,
  toBytes,
  toHex,
} from 'viem';
import { describe, expect, test } from 'vitest';
import { lightAccountAddress, lightAccountV2 } from '../../../src/engine/signing/ethereum/smart-accounts.ts';

const owners: Address[] = [
  '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
  '0x0000000000000000000000000000000000000001',
  '0xffffffffffffffffffffffffffffffffffffffff',
];

describe('the address of a light account', () => {
  test.each(owners)('the address of a light account of %s equals the CREATE2 address', (owner) => {
    for (const salt of [0n, 1n, 2n ** 256n - 1n]) {
      const saltBytes = toBytes(pad(toHex(salt), { size: 32 }));
      expect(lightAccountAddress(lightAccountV2, owner, saltBytes)).toBe(predict(owner, salt));
    }
    expect(lightAccountAddress(lightAccountV2, owner.toLowerCase())).toBe(predict(owner, 0n));
  });

  test('the implementation is the first contract that the factory created', () => {
    const from = lightAccountV2.factoryAddress as Address;
    expect(getContractAddress({ from, nonce: 1n })).toBe(lightAccountV2.implementationAddress);
  });

  /** viem's CREATE2 over the factory's `_getCombinedSalt` and Solady's `initCodeERC1967`. */
  function predict(owner: Address, salt: bigint): Address {
    return getContractAddress({
      opcode: 'CREATE2',
      from: lightAccountV2.factoryAddress as Address,
      salt: keccak256(encodeAbiParameters([{ type: 'address' }, { type: 'uint256' }], [owner, salt])),
      bytecode: concatHex([
        '0x603d3d8160223d3973',
        lightAccountV2.implementationAddress as Hex,
        '0x60095155f3363d3d373d3d363d7f360894a13ba1a3210667c828492db98dca3e2076',
        '0xcc3735a920a3ca505d382bbc545af43d6000803e6038573d6000fd5b3d6000f3',
      ]),
    });
  }
});
