import { concat, type Hex, numberToHex, pad, size, slice } from 'viem';
import type { Random } from '../../simulation/random.ts';
import { precompileInput } from './precompile-inputs.ts';

// Random programs of the EVM. Most of them run to an end that they chose; a few end by a fault.

/** What a program knows of its surroundings. */
export interface Surroundings {
  /** Contracts, accounts, and addresses where nothing is. */
  readonly addresses: readonly Hex[];
  /** How many more levels of code a program may create. */
  readonly levels: number;
}

/** Writes instructions, and keeps count of the stack. */
interface Writer {
  readonly random: Random;
  readonly around: Surroundings;
  height: number;
  readonly bytes: number[];
}

/** All slots that a program writes by number. */
export const SLOTS = 4;
const MAX_STACK = 900;
const op = {
  ...{ stop: 0x00, add: 0x01, sub: 0x03, keccak256: 0x20, calldatasize: 0x36, calldatacopy: 0x37 },
  ...{ codecopy: 0x39, returndatasize: 0x3d, returndatacopy: 0x3e, pop: 0x50, mload: 0x51, mstore: 0x52 },
  ...{ jump: 0x56, jumpi: 0x57, gas: 0x5a, jumpdest: 0x5b, sload: 0x54, sstore: 0x55, push0: 0x5f },
  ...{ tload: 0x5c, tstore: 0x5d, mcopy: 0x5e, mstore8: 0x53, extcodecopy: 0x3c, log0: 0xa0 },
  ...{ create: 0xf0, call: 0xf1, callcode: 0xf2, return: 0xf3, delegatecall: 0xf4, create2: 0xf5 },
  ...{ staticcall: 0xfa, revert: 0xfd, invalid: 0xfe, selfdestruct: 0xff, dup1: 0x80, swap1: 0x90 },
} as const;

const nullary = [
  // ADDRESS, ORIGIN, CALLER, CALLVALUE, CALLDATASIZE, CODESIZE, GASPRICE, RETURNDATASIZE
  ...[0x30, 0x32, 0x33, 0x34, 0x36, 0x38, 0x3a, 0x3d],
  // COINBASE, TIMESTAMP, NUMBER, GASLIMIT, CHAINID, SELFBALANCE, BASEFEE, BLOBBASEFEE, PC, MSIZE, GAS
  ...[0x41, 0x42, 0x43, 0x45, 0x46, 0x47, 0x48, 0x4a, 0x58, 0x59, 0x5a],
];
// ISZERO, NOT, CLZ, CALLDATALOAD, BLOBHASH
const unary = [0x15, 0x19, 0x1e, 0x35, 0x49];
const binary = [
  ...[0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x0a, 0x0b],
  ...[0x10, 0x11, 0x12, 0x13, 0x14, 0x16, 0x17, 0x18, 0x1a, 0x1b, 0x1c, 0x1d],
];
// ADDMOD, MULMOD
const ternary = [0x08, 0x09];
/** BALANCE, EXTCODESIZE, EXTCODEHASH */
const ofAddress = [0x31, 0x3b, 0x3f];
/** Not assigned in Osaka. */
const undefinedOps = [0x0c, 0x0f, 0x1f, 0x21, 0x2f, 0x4b, 0x4f, 0xa5, 0xb0, 0xe0, 0xef, 0xf6, 0xfb, 0xfc];
const words: readonly bigint[] = [
  ...[0n, 1n, 2n, 3n, 31n, 32n, 33n, 255n, 256n, 65_535n],
  ...[2n ** 64n, 2n ** 128n - 1n, 2n ** 160n, 2n ** 255n, 2n ** 255n - 1n, 2n ** 256n - 1n, 2n ** 256n - 2n],
];

function emit({ bytes }: Writer, ...codes: readonly number[]): void {
  bytes.push(...codes);
}

/** Writes an operation that pushes one item. */
function put(writer: Writer, code: number): void {
  emit(writer, code);
  writer.height += 1;
}

function drop(writer: Writer): void {
  need(writer, 1);
  emit(writer, op.pop);
  writer.height -= 1;
}

function push(writer: Writer, value: bigint | Hex): void {
  const hex = typeof value === 'bigint' ? (value === 0n ? '0x' : numberToHex(value)) : value;
  const digits = hex.length % 2 === 1 ? `0${hex.slice(2)}` : hex.slice(2);
  const bytes = Buffer.from(digits, 'hex');
  writer.bytes.push(op.push0 + bytes.length, ...bytes);
  writer.height += 1;
}

function pushNumber(writer: Writer, value: number): void {
  push(writer, BigInt(value));
}

/** Pushes until the stack has so many items. */
function need(writer: Writer, count: number): void {
  while (writer.height < count) pushRandom(writer);
}

function pushRandom(writer: Writer): void {
  const { random, around } = writer;
  random.weighted<() => void>([
    [4, () => push(writer, random.pick(words))],
    [3, () => pushNumber(writer, random.below(300))],
    [1, () => push(writer, random.pick(around.addresses))],
    [1, () => push(writer, bytesOf(random, random.between(1, 32)))],
    [2, () => put(writer, random.pick(nullary))],
  ])();
}

export function bytesOf(random: Random, length: number): Hex {
  const bytes = Array.from({ length }, () => (random.chance(0.2) ? 0 : random.below(256)));
  return `0x${Buffer.from(bytes).toString('hex')}`;
}

/** An offset or a length: mostly small, now and then so large that it costs too much. */
function pushSize(writer: Writer): void {
  const { random } = writer;
  const value = random.weighted<bigint>([
    [20, BigInt(random.below(96))],
    [4, BigInt(random.below(1_500))],
    [1, BigInt(random.below(100_000))],
    [0.3, random.pick(words)],
  ]);
  push(writer, value);
}

/** Pushes the operands of an operation, the last one first, and writes it. */
function apply(writer: Writer, code: number, operands: readonly (() => void)[], results = 0): void {
  const { height } = writer;
  for (const operand of [...operands].reverse()) operand();
  emit(writer, code);
  writer.height = height + results;
}

const some = (writer: Writer) => () => pushRandom(writer);
const sized = (writer: Writer) => () => pushSize(writer);
const address = (writer: Writer) => () => {
  const { random, around } = writer;
  // ADDRESS, CALLER
  if (random.chance(0.15)) put(writer, random.pick([0x30, 0x33]));
  else push(writer, random.pick(around.addresses));
};
const slot = (writer: Writer) => () => pushNumber(writer, writer.random.below(SLOTS));

/** Writes code or data to memory at 0. */
function store(writer: Writer, data: Hex): void {
  for (let at = 0; at < size(data); at += 32) {
    const word = pad(slice(data, at, Math.min(at + 32, size(data))), { dir: 'right', size: 32 });
    apply(writer, op.mstore, [() => pushNumber(writer, at), () => push(writer, word)]);
  }
}

function calls(writer: Writer): void {
  const { random } = writer;
  const kind = random.pick([op.call, op.call, op.callcode, op.delegatecall, op.staticcall, op.staticcall]);
  const target = random.weighted<() => void>([
    [6, address(writer)],
    [2, () => pushNumber(writer, random.between(1, 0x12))],
    [0.3, () => pushNumber(writer, 0x100)],
  ]);
  callTo(writer, kind, target, [sized(writer), sized(writer)]);
}

function callTo(
  writer: Writer,
  kind: number,
  target: () => void,
  input: readonly [offset: () => void, length: () => void],
): void {
  const { random } = writer;
  const value = () =>
    push(
      writer,
      random.weighted([
        [6, 0n],
        [3, 1n],
        [1, 7n],
        [0.5, 2n ** 100n],
      ]),
    );
  const gas = random.weighted<() => void>([
    [8, () => put(writer, op.gas)],
    [2, () => pushNumber(writer, random.below(4_000))],
    [3, () => pushNumber(writer, random.between(5_000, 90_000))],
    [0.5, () => push(writer, 2n ** 256n - 1n)],
  ]);
  const hasValue = kind === op.call || kind === op.callcode;
  const parameters = [gas, target, ...(hasValue ? [value] : []), ...input, sized(writer), sized(writer)];
  apply(writer, kind, parameters, 1);
  if (random.chance(0.5)) return;
  // The result decides: the data that came back is read, or the program ends with it.
  if (random.chance(0.6)) {
    emit(writer, op.pop);
    writer.height -= 1;
  }
  readReturned(writer);
}

function readReturned(writer: Writer): void {
  const { random } = writer;
  const whole = () => put(writer, op.returndatasize);
  const length = random.chance(0.85) ? whole : sized(writer);
  apply(writer, op.returndatacopy, [
    () => pushNumber(writer, random.below(64)),
    () => push(writer, 0n),
    length,
  ]);
}

function precompile(writer: Writer): void {
  const { random } = writer;
  const { address: target, input } = precompileInput(random);
  store(writer, input);
  const kind = random.pick([op.call, op.callcode, op.delegatecall, op.staticcall, op.staticcall]);
  callTo(writer, kind, () => pushNumber(writer, target), [
    () => push(writer, 0n),
    () => pushNumber(writer, random.chance(0.9) ? size(input) : random.below(size(input) + 40)),
  ]);
}

function creates(writer: Writer): void {
  const { random, around } = writer;
  const levels = around.levels - 1;
  const code = initCode(random, { ...around, levels });
  store(writer, code);
  const length = random.chance(0.95) ? size(code) : random.pick([0, 49_152, 49_153]);
  const value = () =>
    push(
      writer,
      random.weighted([
        [6, 0n],
        [2, 1n],
        [0.5, 2n ** 100n],
      ]),
    );
  const parameters = [value, () => push(writer, 0n), () => pushNumber(writer, length)];
  if (random.chance(0.5)) apply(writer, op.create, parameters, 1);
  else apply(writer, op.create2, [...parameters, () => pushNumber(writer, random.below(2))], 1);
  const next = random.fraction();
  if (next < 0.3) readReturned(writer);
  else if (next < 0.75) {
    // Calls what was created, whose address stays on the stack: it is below five operands.
    const zero = () => push(writer, 0n);
    const created = () => put(writer, op.dup1 + 5);
    const gas = () => put(writer, op.gas);
    apply(writer, op.call, [gas, created, zero, zero, zero, zero, zero], 1);
  }
}

/** Code that creates a contract, runs as any program, or fails. */
export function initCode(random: Random, around: Surroundings): Hex {
  const runtime = around.levels > 0 && random.chance(0.7) ? program(random, around, 12) : bytesOf(random, 20);
  return random.weighted<() => Hex>([
    [6, () => deploying(runtime)],
    [2, () => program(random, around, 15)],
    [0.5, () => deploying(concat(['0xef', runtime]))],
    // revert(0, 32) after mstore(0, 42)
    [0.5, () => '0x602a5f5260205ffd'],
    // return(0, 24,576) and return(0, 24,577)
    [0.3, () => random.pick(['0x6160005ff3', '0x6160015ff3'])],
    [0.3, () => '0x'],
    // selfdestruct(caller)
    [0.4, () => '0x33ff'],
    // sstore(0, 1); return(0, 0)
    [0.5, () => '0x60015f555f5ff3'],
  ])();
}

/** Code that deploys this code. */
export function deploying(code: Hex): Hex {
  // PUSH2 length, DUP1, PUSH1 offset, PUSH0, CODECOPY, PUSH0, RETURN
  return concat(['0x61', numberToHex(size(code), { size: 2 }), '0x80600a5f395ff300', code]);
}

function branch(writer: Writer, body: (inner: Writer) => void): void {
  // The body leaves the stack as it was, so that both ways meet.
  const inner: Writer = { ...writer, bytes: [], height: 0 };
  body(inner);
  while (inner.height > 0) {
    emit(inner, op.pop);
    inner.height -= 1;
  }
  pushRandom(writer);
  const target = writer.bytes.length + 3 + 1 + inner.bytes.length;
  emit(writer, op.push0 + 2, target >> 8, target & 0xff, op.jumpi, ...inner.bytes, op.jumpdest);
  writer.height -= 1;
}

/** Runs a body a few times, or until the gas is used up. */
function loop(writer: Writer, body: (inner: Writer) => void): void {
  const { random } = writer;
  const rounds = random.weighted([
    [8, random.between(1, 6)],
    [1, random.between(50, 200)],
    [0.2, 100_000],
  ]);
  pushNumber(writer, rounds);
  const start = writer.bytes.length;
  emit(writer, op.jumpdest);
  const inner: Writer = { ...writer, bytes: [], height: 0 };
  body(inner);
  while (inner.height > 0) {
    emit(inner, op.pop);
    inner.height -= 1;
  }
  // PUSH1 1, SWAP1, SUB, DUP1, PUSH2 start, JUMPI, POP
  emit(writer, ...inner.bytes, 0x60, 1, op.swap1, op.sub, op.dup1, 0x61, start >> 8, start & 0xff);
  emit(writer, op.jumpi, op.pop);
  writer.height -= 1;
}

function statement(writer: Writer): void {
  const { random, around } = writer;
  const nested = (inner: Writer) => {
    const absolute: Writer = { ...inner, around: { ...around, levels: Math.min(around.levels, 1) } };
    for (let left = random.between(1, 3); left > 0; left -= 1) {
      random.weighted([
        [6, simple],
        [1, calls],
      ])(absolute);
    }
    inner.height = absolute.height;
  };
  random.weighted<() => void>([
    [24, () => simple(writer)],
    [4, () => calls(writer)],
    [3, () => precompile(writer)],
    [around.levels > 0 ? 2 : 0, () => creates(writer)],
    [2, () => branch(writer, nested)],
    [1, () => loop(writer, nested)],
  ])();
}

/** An operation without a jump, whose code may stand anywhere. */
function simple(writer: Writer): void {
  const { random } = writer;
  const [any, length, at] = [some(writer), sized(writer), sized(writer)];
  random.weighted<() => void>([
    [5, () => pushRandom(writer)],
    [5, () => take(writer, random.pick(binary), 2)],
    [2, () => take(writer, random.pick(unary), 1)],
    [1, () => take(writer, random.pick(ternary), 3)],
    [2, () => apply(writer, random.pick(ofAddress), [address(writer)], 1)],
    [2, () => apply(writer, op.mstore, [at, any])],
    [1, () => apply(writer, op.mstore8, [at, any])],
    [2, () => apply(writer, op.mload, [at], 1)],
    [1, () => apply(writer, op.mcopy, [at, at, length])],
    [1, () => apply(writer, op.keccak256, [at, length], 1)],
    [1, () => apply(writer, op.calldatacopy, [at, at, length])],
    [1, () => apply(writer, op.codecopy, [at, at, length])],
    [1, () => apply(writer, op.extcodecopy, [address(writer), at, at, length])],
    [1, () => apply(writer, op.returndatacopy, [at, () => push(writer, 0n), () => pushNumber(writer, 0)])],
    [4, () => apply(writer, op.sstore, [slot(writer), () => pushNumber(writer, random.below(3))])],
    [1, () => apply(writer, op.sstore, [slot(writer), any])],
    [3, () => apply(writer, op.sload, [slot(writer)], 1)],
    [1, () => apply(writer, op.tstore, [slot(writer), any])],
    [1, () => apply(writer, op.tload, [slot(writer)], 1)],
    [1.5, () => logs(writer)],
    [1, () => duplicate(writer)],
    [1, () => drop(writer)],
    // EXP with a long exponent, SIGNEXTEND and BYTE with any operands are among the binary ones.
    // BLOCKHASH of a block that does not exist.
    [0.3, () => apply(writer, 0x40, [() => push(writer, random.pick(words.slice(10)))], 1)],
  ])();
}

function take(writer: Writer, code: number, operands: number): void {
  need(writer, operands);
  emit(writer, code);
  writer.height += 1 - operands;
}

function logs(writer: Writer): void {
  const { random } = writer;
  const topics = random.between(0, 4);
  apply(writer, op.log0 + topics, [sized(writer), sized(writer), ...Array(topics).fill(some(writer))]);
}

function duplicate(writer: Writer): void {
  const { random } = writer;
  need(writer, 2);
  const reach = Math.min(writer.height, 16);
  if (random.chance(0.5)) {
    emit(writer, op.dup1 + random.below(reach));
    writer.height += 1;
  } else emit(writer, op.swap1 + random.below(Math.max(reach - 1, 1)));
}

/** A fault, which uses up the gas of its message. */
function fault(writer: Writer): void {
  const { random } = writer;
  random.pick<() => void>([
    () => emit(writer, random.pick(undefinedOps)),
    () => emit(writer, op.invalid),
    () => emit(writer, op.pop, ...Array(writer.height).fill(op.pop)),
    // Into the data of a PUSH, and beyond the end.
    () => emit(writer, 0x60, random.pick([0, 1, 255]), op.jump),
    // JUMPDEST, GAS, PUSH1, JUMP: the stack overflows.
    () => {
      const start = writer.bytes.length;
      emit(writer, op.jumpdest, op.gas, 0x61, start >> 8, start & 0xff, op.jump);
    },
    () => apply(writer, op.returndatacopy, [sized(writer), () => push(writer, 2n ** 64n), sized(writer)]),
  ])();
}

function end(writer: Writer): void {
  const { random } = writer;
  random.weighted<() => void>([
    [3, () => emit(writer, op.stop)],
    [5, () => apply(writer, op.return, [sized(writer), sized(writer)])],
    [2, () => apply(writer, op.revert, [sized(writer), sized(writer)])],
    [1, () => apply(writer, op.selfdestruct, [address(writer)])],
    [1, () => fault(writer)],
    [1, () => undefined],
  ])();
}

/** A program of about so many statements. */
export function program(random: Random, around: Surroundings, statements: number): Hex {
  const writer: Writer = { random, around, height: 0, bytes: [] };
  for (let left = random.between(1, statements); left > 0; left -= 1) {
    statement(writer);
    if (writer.height > MAX_STACK) break;
  }
  end(writer);
  return `0x${Buffer.from(writer.bytes).toString('hex')}`;
}
