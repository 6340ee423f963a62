import { createClient, custom, type Hex, toHex } from 'viem';
import {
  entryPoint06Address,
  entryPoint07Address,
  entryPoint08Address,
  entryPoint09Address,
  toSimple7702SmartAccount,
} from 'viem/account-abstraction';
import { privateKeyToAccount } from 'viem/accounts';
import { expect, test } from 'vitest';
import type { BatchCall } from '../../../src/engine/signing/ethereum/batch-executor.ts';
import {
  ENTRY_POINT_ADDRESS,
  encodeAccountCalls,
  SIMPLE_ACCOUNT_ADDRESS,
} from '../../../src/engine/signing/ethereum/smart-accounts.ts';
import { hashUserOperation } from '../../../src/engine/signing/ethereum/user-operation.ts';

// The deployed addresses come from viem.

const owner = privateKeyToAccount(`0x${'46'.repeat(32)}`);
const client = createClient({
  transport: custom({ request: () => Promise.reject(new Error('nothing is asked of a node')) }),
});
const account = await toSimple7702SmartAccount({ client, owner });

test('accounts delegate to the same contract as in viem, for the same entry point', () => {
  expect(SIMPLE_ACCOUNT_ADDRESS).toBe(account.authorization.address.toLowerCase());
  expect(ENTRY_POINT_ADDRESS).toBe(account.entryPoint.address.toLowerCase());
  expect(ENTRY_POINT_ADDRESS).toBe(entryPoint08Address.toLowerCase());
  expect(account.entryPoint.version).toBe('0.8');
});

const calls: readonly BatchCall[] = [
  { to: '0x9858effd232b4033e47d90003d41ec34ecaeda94', value: 7n, data: new Uint8Array() },
  { to: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913', value: 0n, data: Uint8Array.of(1, 2, 3) },
];

test.each([1, 2])('the call data of %i calls equals that of viem', async (count) => {
  const asked = calls.slice(0, count);
  const theirs = await account.encodeCalls(
    asked.map(({ to, value, data }) => ({ to: to as Hex, value, data: toHex(data) })),
  );
  expect(toHex(encodeAccountCalls(asked))).toBe(theirs);
});

test.each([
  [entryPoint06Address, '0.6'],
  [entryPoint07Address, '0.7'],
  [entryPoint08Address, '0.8'],
  [entryPoint09Address, '0.9'],
])('%s is entry point %s', (contract, version) => {
  const operation = {
    sender: owner.address,
    nonce: '0x0',
    call_data: '0x',
    call_gas_limit: '0x1',
    verification_gas_limit: '0x1',
    pre_verification_gas: '0x1',
    max_fee_per_gas: '0x1',
    max_priority_fee_per_gas: '0x1',
  };
  const params = { contract, chain_id: 8453, user_operation: operation };
  expect(hashUserOperation(params).version).toBe(version);
});
