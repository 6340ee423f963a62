import { encodeFunctionData, parseAbi } from 'viem';

/**
 * The calldata of the cases, encoded by viem: `node test/unit/policy/make-calldata.ts` prints cases/calldata.yaml,
 * and a test compares the two.
 */
const abi = parseAbi([
  'struct Leg { address to; uint256 amount; bytes32[] tags; }',
  'function transfer(address to, uint256 amount)',
  'function transfer(address to, uint256 amount, string note)',
  'function approve(address, uint256)',
  'function payMany(address[] targets, uint256[][] amounts, Leg[2] legs)',
  'function settle(bool done, int64 delta, bytes proof, Leg leg)',
  'function deposit()',
  'function withdraw(uint256 amount)',
]);

const alice = '0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045';
const bob = '0x000000000000000000000000000000000000dEaD';
const tag = (byte: string) => `0x${byte.repeat(32)}` as const;
const noteToAlice = (note: string) => [alice, 100n, note] as const;
const legs = [
  { to: alice, amount: 10n, tags: [tag('11'), tag('22')] },
  { to: bob, amount: 20n, tags: [] },
] as const;

interface Source {
  readonly functionName: string;
  readonly args?: readonly unknown[];
  /** The modifications of the encoded bytes, with their descriptions. */
  readonly spoil?: readonly [words: string, change: (dataHex: string) => string];
}

const transfer = (amount: bigint): Source => ({ functionName: 'transfer', args: [alice, amount] });
const cutOff = ['without its last byte', (dataHex: string) => dataHex.slice(0, -2)] as const;
const selectorOnly = ['only the selector', (dataHex: string) => dataHex.slice(0, 10)] as const;
const oneByteMore = ['and a byte behind it', (dataHex: string) => `${dataHex}00`] as const;

const sources: Readonly<Record<string, Source>> = {
  'transfer 99': transfer(99n),
  'transfer 100': transfer(100n),
  'transfer 101': transfer(101n),
  'transfer all': transfer(2n ** 256n - 1n),
  'transfer to bob': { functionName: 'transfer', args: [bob, 100n] },
  'transfer with a note': { functionName: 'transfer', args: noteToAlice('rent') },
  'transfer with another note': { functionName: 'transfer', args: noteToAlice('Rent') },
  'transfer with a hex note': { functionName: 'transfer', args: noteToAlice('0xAB') },
  'approve 100': { functionName: 'approve', args: [alice, 100n] },
  'pay many': { functionName: 'payMany', args: [[alice, bob], [[1n, 2n], [3n]], legs] },
  'pay many, none': { functionName: 'payMany', args: [[], [], legs] },
  'pay many, all to alice': {
    functionName: 'payMany',
    args: [
      [alice, alice],
      [[100n], [100n]],
      [legs[0], legs[0]],
    ],
  },
  'settle done': { functionName: 'settle', args: [true, -5n, '0xdeadbeef', legs[0]] },
  'settle not done': { functionName: 'settle', args: [false, 5n, '0x', legs[1]] },
  'pay many, twelve, the last to bob': {
    functionName: 'payMany',
    args: [[...Array.from({ length: 11 }, () => alice), bob], [], legs],
  },
  deposit: { functionName: 'deposit' },
  'withdraw 100': { functionName: 'withdraw', args: [100n] },
  'deposit with a byte more': { functionName: 'deposit', spoil: oneByteMore },
  'transfer 100 with a byte more': { ...transfer(100n), spoil: oneByteMore },
  'transfer 100 cut off': { ...transfer(100n), spoil: cutOff },
  'transfer, selector only': { ...transfer(100n), spoil: selectorOnly },
  'transfer 100, dirty address': {
    ...transfer(100n),
    spoil: [
      'a bit set in the padding of the address',
      (dataHex) => `${dataHex.slice(0, 10)}01${dataHex.slice(12)}`,
    ],
  },
  'transfer with a note, moved': {
    functionName: 'transfer',
    args: noteToAlice('rent'),
    spoil: [
      'the note one word further, its offset with it',
      (dataHex) =>
        `${dataHex.slice(0, 10 + 128)}${'80'.padStart(64, '0')}${'0'.repeat(64)}${dataHex.slice(10 + 192)}`,
    ],
  },
};

/** cases/calldata.yaml. */
export function makeCalldata(): string {
  const entries = Object.entries(sources).map(([name, { functionName, args = [], spoil }]) => {
    const [words, change] = spoil ?? [undefined, (dataHex: string) => dataHex];
    const dataHex = change(encodeFunctionData({ abi, functionName, args } as never));
    const spelled = `${functionName}(${args.map(spell).join(', ')})${words ? `, ${words}` : ''}`;
    return `${name}:\n  # ${spelled}\n  data: "${dataHex}"\n`;
  });
  return `# encodeFunctionData of viem; printed by: node test/unit/policy/make-calldata.ts\n${entries.join('')}`;
}

function spell(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) => {
    if (item === alice) return 'alice';
    if (item === bob) return 'bob';
    return typeof item === 'bigint' ? String(item) : item;
  }).replaceAll('"', '');
}

if (import.meta.main) process.stdout.write(makeCalldata());
