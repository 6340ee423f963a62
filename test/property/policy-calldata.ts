import { encodeFunctionData, parseAbi } from 'viem';
import type { Kind } from './policy-conditions.ts';

/** Overloads, tuples, nested arrays, and parameters without names. */
export const callableAbi = parseAbi([
  'struct Leg { address to; uint256 amount; bytes32[] tags; }',
  'function transfer(address to, uint256 amount)',
  'function transfer(address to, uint256 amount, string note)',
  'function approve(address, uint256)',
  'function payMany(address[] targets, uint256[][] amounts, Leg[2] legs)',
  'function settle(bool done, int64 delta, bytes proof, Leg leg)',
  'function deposit()',
  'function withdraw(uint256 amount)',
]);

/** Fields of that ABI and how each compares. */
export const calldataFields: readonly (readonly [field: string, kind: Kind])[] = [
  ['function_name', 'name'],
  ['transfer', 'name'],
  ['transfer.to', 'evm'],
  ['transfer.amount', 'number'],
  ['transfer.note', 'text'],
  ['withdraw.amount', 'number'],
  ['approve.0', 'evm'],
  ['approve.1', 'number'],
  ['payMany.targets', 'evm'],
  ['payMany.targets.1', 'evm'],
  ['payMany.amounts', 'number'],
  ['payMany.amounts.0.1', 'number'],
  ['payMany.legs.to', 'evm'],
  ['payMany.legs.1.amount', 'number'],
  ['payMany.legs.tags', 'bytes32'],
  ['settle.done', 'boolean'],
  ['settle.delta', 'number'],
  ['settle.proof', 'bytes'],
  ['settle.leg.to', 'evm'],
  ['settle.leg.tags.0', 'bytes32'],
];

const [dead, usdc, vitalik] = [
  '0x000000000000000000000000000000000000dEaD',
  '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  '0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045',
] as const;
const ones = `0x${'11'.repeat(32)}` as const;
const leg = (to: `0x${string}`, amount: bigint, tags: `0x${string}`[] = []) => ({ to, amount, tags });
const encode = (functionName: string, args: readonly unknown[]): string =>
  encodeFunctionData({ abi: callableAbi, functionName, args } as never);

const wellFormed = [
  encode('transfer', [vitalik, 100n]),
  encode('transfer', [dead, 101n]),
  encode('transfer', [usdc, 2n ** 256n - 1n, 'Pay the bill']),
  encode('transfer', [usdc, 0n, '0xAbC']),
  encode('approve', [vitalik, 1n]),
  encode('payMany', [[], [], [leg(dead, 1n), leg(usdc, 99n)]]),
  encode('payMany', [
    [vitalik, dead],
    [[100n, 101n], [], [1n]],
    [leg(dead, 1n, [ones]), leg(dead, 2n)],
  ]),
  encode('payMany', [[vitalik], [[]], [leg(dead, 1n, [ones, ones]), leg(vitalik, 100n)]]),
  encode('settle', [true, -1n, '0xdeadbeef', leg(vitalik, 1n, [ones])]),
  encode('settle', [false, 99n, '0x', leg(vitalik, 1n)]),
  encode('deposit', []),
  encode('withdraw', [100n]),
];

const toBytes = (dataHex: string): Uint8Array => Uint8Array.from(Buffer.from(dataHex.slice(2), 'hex'));

export const wellFormedCalldatas: readonly Uint8Array[] = wellFormed.map(toBytes);

/** Calldata by viem, valid and corrupted: trailing bytes, truncated, selector only, no selector, unknown function. */
export const calldatas: readonly Uint8Array[] = [
  ...wellFormed,
  ...wellFormed.map((data) => `${data}00`),
  ...wellFormed.slice(0, 6).map((data) => data.slice(0, -2)),
  ...wellFormed.map((data) => data.slice(0, 10)),
  // An offset that points elsewhere: another encoding of the same arguments, or an invalid one.
  ...wellFormed.slice(2, 8).map((data) => `${data.slice(0, 10)}${'0'.repeat(62)}80${data.slice(74)}`),
  '0x',
  '0xa9059c',
  '0x12345678',
].map(toBytes);

const legType = [
  { name: 'to', type: 'address' },
  { name: 'amount', type: 'uint256' },
];
const paymentType = [
  ...legType,
  { name: 'note', type: 'string' },
  { name: 'final', type: 'bool' },
  { name: 'legs', type: 'Leg[]' },
];
const domainType = [{ name: 'chainId', type: 'uint256' }];

/**
 * Variants of the declaration of a message: unchanged, in another order, with a domain type, with an unused struct,
 * and with members of another type.
 */
export const messageTypeMaps = [
  { primary_type: 'Payment', types: { Payment: paymentType, Leg: legType } },
  { primary_type: 'Payment', types: { Payment: paymentType, Leg: [...legType].reverse() } },
  { primary_type: 'Payment', types: { Payment: paymentType, Leg: legType, EIP712Domain: domainType } },
  { primary_type: 'Payment', types: { Payment: paymentType, Leg: legType, Unused: legType } },
  {
    primary_type: 'Payment',
    types: {
      Leg: legType,
      Payment: paymentType.filter(({ name }) => name !== 'to').concat([{ name: 'to', type: 'address' }]),
    },
  },
  // A type of which payments have several.
  { primary_type: 'Leg', types: { Leg: legType } },
];
