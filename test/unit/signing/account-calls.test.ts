import {
  encodeAbiParameters,
  encodeFunctionData,
  encodePacked,
  type Hex,
  pad,
  parseAbi,
  parseAbiParameters,
  toHex,
  zeroAddress,
} from 'viem';
import { describe, expect, test } from 'vitest';
import { hexToBytes } from '../../../src/engine/crypto/encoding.ts';
import { decodeCanonicalBatch } from '../../../src/engine/signing/ethereum/batch-executor.ts';
import { decodeUserOperationCalls } from '../../../src/engine/signing/ethereum/user-operation-calls.ts';

// viem encodes the expected values.
const account = parseAbi([
  'struct Call { address target; uint256 value; bytes data; }',
  'function execute(address dest, uint256 value, bytes func)',
  'function executeBatch(address[] dest, bytes[] func)',
  'function executeBatch(address[] dest, uint256[] value, bytes[] func)',
  'function executeBatch(Call[] calls)',
  'function execute(bytes32 mode, bytes executionData)',
  'function execTransaction(address to, uint256 value, bytes data, uint8 operation)',
]);
const alice = '0xd8da6bf26964af9d7eed9e03e53415d37aa96045';
const bob = '0x000000000000000000000000000000000000dead';
const calls = [
  { target: alice, value: 7n, data: '0x' },
  { target: bob, value: 2n ** 255n, data: `0x${'ab'.repeat(33)}` },
] as const;
const targets = calls.map(({ target }) => target);
const values = calls.map(({ value }) => value);
const datas = calls.map(({ data }) => data);
const asked = calls.map(({ target, value, data }) => ({
  to: target,
  value,
  data: hexToBytes(data.slice(2)),
}));

const encode = (...args: readonly unknown[]): Hex =>
  encodeFunctionData({ abi: account, functionName: args[0], args: args.slice(1) } as never);
const batch = encodeAbiParameters(parseAbiParameters('(address to, uint256 value, bytes data)[]'), [
  calls.map(({ target: to, value, data }) => ({ to, value, data })),
]);
const mode: Hex = `0x01${'00'.repeat(31)}`;
const single: Hex = `0x${'00'.repeat(32)}`;
const packed = encodePacked(['address', 'uint256', 'bytes'], [bob, calls[1].value, calls[1].data]);
// executeUserOp(PackedUserOperation,bytes32)
const wrapped = (callData: Hex): Hex => `0x8dd7712f${callData.slice(2)}`;

const readers = [
  ['a user operation', decodeUserOperationCalls],
  ['a batch of ERC-7821', decodeCanonicalBatch],
] as const;
type Form = readonly [what: string, callData: Hex, reader: string, calls: readonly object[] | undefined];
const forms: readonly Form[] = [
  ['one call', encode('execute', bob, values[1], datas[1]), 'a user operation', asked.slice(1)],
  [
    'targets and calldata',
    encode('executeBatch', targets, datas),
    'a user operation',
    asked.map((call) => ({ ...call, value: 0n })),
  ],
  ['with values', encode('executeBatch', targets, values, datas), 'a user operation', asked],
  [
    'without values',
    encode('executeBatch', targets, [], datas),
    'a user operation',
    asked.map((call) => ({ ...call, value: 0n })),
  ],
  [
    'lists of different lengths',
    encode('executeBatch', targets, datas.slice(1)),
    'a user operation',
    undefined,
  ],
  ['no calls at all', encode('executeBatch', [], []), 'a user operation', undefined],
  ['a list', encode('executeBatch', calls), 'a user operation', asked],
  ['a batch', encode('execute', mode, batch), 'both', asked],
  [
    'a batch that may fail in part',
    encode('execute', mode.replace('0x0100', '0x0101'), batch),
    'a user operation',
    asked,
  ],
  ['one execution', encode('execute', single, packed), 'a user operation', asked.slice(1)],
  [
    'one execution that may fail',
    encode('execute', single.replace('0x0000', '0x0001'), packed),
    'a user operation',
    asked.slice(1),
  ],
  [
    'one execution without calldata',
    encode('execute', single, encodePacked(['address', 'uint256'], [alice, 7n])),
    'a user operation',
    asked.slice(0, 1),
  ],
  [
    'an execution that is too short',
    encode('execute', single, encodePacked(['address', 'uint248'], [alice, 7n])),
    'none',
    undefined,
  ],
  ...['0xff00', '0xfe00', '0x0200', '0x0102', '0x0002'].map(
    (start) =>
      [
        `an execution of the mode ${start}`,
        encode('execute', mode.replace('0x0100', start), start.startsWith('0x01') ? batch : packed),
        'none',
        undefined,
      ] as Form,
  ),
  ...[
    ['a batch with data for the account', `0x01000000000078210001${'00'.repeat(22)}`],
    ['a batch of batches', `0x01000000000078210002${'00'.repeat(22)}`],
    ['a batch with a payload', `0x01${'00'.repeat(30)}01`],
  ].map(([what, other]) => [what!, encode('execute', other, batch), 'none', undefined] as Form),
  [
    'a batch with a call to address 0',
    encode(
      'execute',
      mode,
      encodeAbiParameters(parseAbiParameters('(address to, uint256 value, bytes data)[]'), [
        [{ to: zeroAddress, value: 1n, data: '0x' }],
      ]),
    ),
    'a batch of ERC-7821',
    [{ to: zeroAddress, value: 1n, data: new Uint8Array() }],
  ],
  [
    'one call for the account to take apart',
    wrapped(encode('execute', bob, values[1], datas[1])),
    'a user operation',
    asked.slice(1),
  ],
  ['a list for the account to take apart', wrapped(encode('executeBatch', calls)), 'a user operation', asked],
  ['one wrapped twice', wrapped(wrapped(encode('executeBatch', calls))), 'none', undefined],
  ['another function of an account', encode('execTransaction', bob, 1n, '0x', 1), 'none', undefined],
  ['a batch with a byte more inside', encode('execute', mode, `${batch}00`), 'none', undefined],
];

describe.each(forms)('%s', (_, callData, owner, expected) => {
  test.each(readers)('read as %s', (reader, decode) => {
    expect(decode(hexToBytes(callData.slice(2)))).toEqual(
      [reader, 'both'].includes(owner) ? expected : undefined,
    );
    expect(decode(hexToBytes(`${callData.slice(2)}00`))).toBe(undefined);
    expect(decode(hexToBytes(callData.slice(2, -2)))).toBe(undefined);
  });
});

test('a thousand calls that point to the same bytes are refused without decoding them', () => {
  const word = (value: number): string => pad(toHex(value)).slice(2);
  const count = 1000;
  const shared = `${word(80_000)}${'11'.repeat(80_000)}`;
  const offsets = word(32 * count).repeat(count);
  const [lists, list] = [encode('executeBatch', [], []), encode('executeBatch', [])].map((hex) =>
    hex.slice(2, 10),
  );
  const pointing = [
    `${lists}${word(64)}${word(96 + 32 * count)}${word(count)}${word(1).repeat(count)}${word(count)}${offsets}${shared}`,
    `${list}${word(32)}${word(count)}${offsets}${word(1)}${word(0)}${word(96)}${shared}`,
  ];
  for (const callData of pointing) {
    for (const [, decode] of readers) expect(decode(hexToBytes(callData))).toBe(undefined);
  }
});
