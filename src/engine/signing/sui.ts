import { blake2b } from '@noble/hashes/blake2.js';
import { type ByteReader, createByteReader, InvalidBytesError } from '../crypto/byte-reader.ts';
import { ed25519PublicKey } from '../crypto/ed25519.ts';
import { bytesTo0xHex, concatBytes } from '../crypto/encoding.ts';
import { readBcsBool, readBcsBytes, readBcsMany, readBcsText, readBcsVariant } from './bcs.ts';
import { type ChainSigner, ed25519KeyText, signMessageEd25519 } from './chain-signer.ts';
import { InvalidTransactionError } from './signing-errors.ts';

const ED25519_FLAG = Uint8Array.of(0x00);

/**
 * Signs for Sui accounts, whose address is blake2b-256(flag || key). The caller assembles the serialized signature,
 * flag || signature || key. Source: Sui docs, addresses and signatures.
 */
export const suiSigner: ChainSigner = {
  walletKeys(secret) {
    const key = ed25519PublicKey(secret);
    return {
      address: bytesTo0xHex(blake2b(concatBytes(ED25519_FLAG, key), { dkLen: 32 })),
      publicKey: ed25519KeyText(key),
    };
  },
  signPayload: signMessageEd25519,
};

/** A command of a programmable transaction, in the form that policies evaluate. `encoded` is its BCS as 0x hex. */
export type SuiCommand = { readonly encoded: string } & (
  | {
      readonly commandName: 'TransferObjects';
      /** 0x and 64 hex digits; undefined unless it is a pure input of the transaction. */
      readonly recipient: string | undefined;
      /**
       * The sum of the transferred coins in base units. Undefined unless this transaction splits off every coin with
       * a pure amount and merges nothing into it.
       */
      readonly amount: bigint | undefined;
    }
  | { readonly commandName: 'SplitCoins' }
  | { readonly commandName: 'MergeCoins' }
);

interface SuiTransaction {
  /** 0x and 64 hex digits. */
  readonly sender: string;
  /** The account that pays the gas. Only in a sponsored transaction does it differ from the sender. */
  readonly gasOwner: string;
  /** MIST per unit. */
  readonly gasPrice: bigint;
  /** MIST. */
  readonly gasBudget: bigint;
  /** Object references of the gas coins, BCS as 0x hex. */
  readonly gasPayment: readonly string[];
  /** Inputs of the commands, BCS as 0x hex. */
  readonly inputs: readonly string[];
  readonly commands: readonly SuiCommand[];
  /** BCS as 0x hex. */
  readonly expiration: string;
}

type Argument =
  | { readonly kind: 'gas' }
  | { readonly kind: 'input'; readonly index: number }
  /** `output` is undefined if the argument is the whole result. */
  | { readonly kind: 'result'; readonly command: number; readonly output: number | undefined };

type Command = { readonly encoded: string } & (
  | { readonly name: 'TransferObjects'; readonly objects: readonly Argument[]; readonly recipient: Argument }
  | { readonly name: 'SplitCoins'; readonly coin: Argument; readonly amounts: readonly Argument[] }
  | { readonly name: 'MergeCoins'; readonly destination: Argument; readonly sources: readonly Argument[] }
);

/** `pure` is undefined if the input is an object. */
interface Input {
  readonly pure: Uint8Array | undefined;
  /** Whether the input is an object that only the sender owns. */
  readonly isOwned: boolean;
  readonly encoded: string;
}

/** The commands of programmable transactions, by variant. Rules can read variants 1 to 3 only. */
export const suiCommandNames: readonly string[] = [
  'MoveCall',
  'TransferObjects',
  'SplitCoins',
  'MergeCoins',
  'Publish',
  'MakeMoveVec',
  'Upgrade',
];

// Intent { scope TransactionData 0, version 0, app Sui 0 }
const TRANSACTION_INTENT = 0;

/**
 * Decodes the transaction in an intent message into the form that policies evaluate. Returns undefined for another
 * intent, such as a personal message. Source: sui-types, transaction.rs.
 *
 * @throws InvalidTransactionError if the transaction cannot be decoded completely, has a command other than
 * TransferObjects, SplitCoins and MergeCoins, or merges coins into a coin that another account may own.
 */
export function decodeSuiIntentMessage(message: Uint8Array): SuiTransaction | undefined {
  const isTransaction =
    message.length >= 3 && message.subarray(0, 3).every((byte) => byte === TRANSACTION_INTENT);
  if (!isTransaction) return undefined;
  const reader = createByteReader(message.subarray(3));
  try {
    const transaction = readTransactionData(reader);
    reader.end();
    return transaction;
  } catch (error) {
    if (error instanceof InvalidBytesError) throw new InvalidTransactionError('', error.message);
    throw error;
  }
}

// V1 { kind, sender, gas { payment, owner, price, budget }, expiration }
function readTransactionData(reader: ByteReader): SuiTransaction {
  expectVariant(reader, 0, 'version 1 of the transaction data');
  expectVariant(reader, 0, 'a programmable transaction');
  const inputs = readBcsMany(reader, () => readInput(reader));
  const commands = readBcsMany(reader, () => readCommand(reader));
  const sender = readAddress(reader);
  const gasPayment = readBcsMany(reader, () => encodedOf(reader, () => skipObjectRef(reader)).encoded);
  const gasOwner = readAddress(reader);
  const gasPrice = reader.u64();
  const gasBudget = reader.u64();
  const { encoded: expiration } = encodedOf(reader, () => skipExpiration(reader));
  requireOwnMerges(commands, { inputs, isSponsored: gasOwner !== sender });
  return {
    sender,
    gasOwner,
    gasPrice,
    gasBudget,
    gasPayment,
    inputs: inputs.map(({ encoded }) => encoded),
    commands: toViews(commands, inputs),
    expiration,
  };
}

/** Reads a value and returns it with its bytes as 0x hex. */
function encodedOf<T>(reader: ByteReader, read: () => T): { value: T; encoded: string } {
  const start = reader.offset();
  const value = read();
  return { value, encoded: bytesTo0xHex(reader.since(start)) };
}

// CallArg: 0 Pure, 1 Object { 0 owned, 1 shared, 2 receiving }, 2 FundsWithdrawal
function readInput(reader: ByteReader): Input {
  const { value, encoded } = encodedOf(reader, () => readInputBody(reader));
  return { pure: undefined, isOwned: false, ...value, encoded };
}

function readInputBody(reader: ByteReader): Partial<Input> {
  const variant = readBcsVariant(reader);
  if (variant === 0) return { pure: readBcsBytes(reader) };
  if (variant === 2) {
    skipFundsWithdrawal(reader);
    return {};
  }
  if (variant !== 1) throw new InvalidBytesError(`expected a known input, got variant ${variant}`);
  const object = readBcsVariant(reader);
  if (object === 0 || object === 2) {
    skipObjectRef(reader);
    return { isOwned: object === 0 };
  }
  if (object !== 1) throw new InvalidBytesError(`expected a known object, got variant ${object}`);
  reader.bytes(32);
  reader.u64();
  readBcsBool(reader);
  return {};
}

// reservation { 0 u64 } || type { 0 balance of a type } || from { 0 sender, 1 sponsor, 2 allowance { funder, id } }
function skipFundsWithdrawal(reader: ByteReader): void {
  expectVariant(reader, 0, 'a reservation of an amount');
  reader.u64();
  expectVariant(reader, 0, 'a withdrawal of a balance');
  skipTypeTag(reader, 0);
  const from = readBcsVariant(reader);
  if (from > 2) throw new InvalidBytesError(`expected a known account of a withdrawal, got variant ${from}`);
  if (from === 2) reader.bytes(64);
}

// The chain's limit on the nesting of types.
const MAX_TYPE_DEPTH = 16;

// TypeTag: variant 6 is a vector of a type and variant 7 a struct; the others have no content.
function skipTypeTag(reader: ByteReader, depth: number): void {
  if (depth > MAX_TYPE_DEPTH) throw new InvalidBytesError(`expected at most ${MAX_TYPE_DEPTH} nested types`);
  const variant = readBcsVariant(reader);
  if (variant > 10) throw new InvalidBytesError(`expected a known type, got variant ${variant}`);
  if (variant === 6) skipTypeTag(reader, depth + 1);
  if (variant === 7) {
    reader.bytes(32);
    readBcsText(reader);
    readBcsText(reader);
    readBcsMany(reader, () => skipTypeTag(reader, depth + 1));
  }
}

function readCommand(reader: ByteReader): Command {
  const { value, encoded } = encodedOf(reader, () => readCommandBody(reader));
  return { ...value, encoded };
}

function readCommandBody(reader: ByteReader) {
  const variant = readBcsVariant(reader);
  if (variant === 1) {
    const objects = readBcsMany(reader, () => readArgument(reader));
    return { name: 'TransferObjects' as const, objects, recipient: readArgument(reader) };
  }
  if (variant === 2) {
    const coin = readArgument(reader);
    return { name: 'SplitCoins' as const, coin, amounts: readBcsMany(reader, () => readArgument(reader)) };
  }
  if (variant === 3) {
    const destination = readArgument(reader);
    const sources = readBcsMany(reader, () => readArgument(reader));
    return { name: 'MergeCoins' as const, destination, sources };
  }
  const name = suiCommandNames[variant] ?? `variant ${variant}`;
  throw new InvalidBytesError(`expected TransferObjects, SplitCoins or MergeCoins, got ${name}`);
}

// Argument: 0 gas coin, 1 input, 2 result, 3 nested result
function readArgument(reader: ByteReader): Argument {
  const variant = readBcsVariant(reader);
  if (variant === 0) return { kind: 'gas' };
  if (variant === 1) return { kind: 'input', index: reader.u16() };
  if (variant === 2) return { kind: 'result', command: reader.u16(), output: undefined };
  if (variant === 3) return { kind: 'result', command: reader.u16(), output: reader.u16() };
  throw new InvalidBytesError(`expected a known argument, got variant ${variant}`);
}

function readAddress(reader: ByteReader): string {
  return bytesTo0xHex(reader.bytes(32));
}

// id || version || digest
function skipObjectRef(reader: ByteReader): void {
  reader.bytes(32);
  reader.u64();
  skipDigest(reader);
}

function skipDigest(reader: ByteReader): void {
  if (readBcsBytes(reader).length !== 32) throw new InvalidBytesError('expected a digest of 32 bytes');
}

// TransactionExpiration: 0 none, 1 epoch, 2 ValidDuring { four optional bounds, chain, nonce }, 3 Validity, which
// also has optional proposers { epoch, their indexes }
function skipExpiration(reader: ByteReader): void {
  const variant = readBcsVariant(reader);
  if (variant === 0) return;
  if (variant === 1) {
    reader.u64();
    return;
  }
  if (variant > 3) throw new InvalidBytesError(`expected a known expiration, got variant ${variant}`);
  for (let bound = 0; bound < 4; bound += 1) {
    if (readBcsBool(reader)) reader.u64();
  }
  skipDigest(reader);
  reader.u32();
  if (variant === 3 && readBcsBool(reader)) {
    reader.u64();
    readBcsMany(reader, () => reader.u32());
  }
}

function expectVariant(reader: ByteReader, expected: number, what: string): void {
  const variant = readBcsVariant(reader);
  if (variant !== expected) throw new InvalidBytesError(`expected ${what}, got variant ${variant}`);
}

/**
 * Rejects merges that give coins to someone else: into a shared object, which anyone may spend, and between the gas
 * coin and coins of the sender if another account pays the gas.
 */
function requireOwnMerges(
  commands: readonly Command[],
  { inputs, isSponsored }: { readonly inputs: readonly Input[]; readonly isSponsored: boolean },
): void {
  const merges = commands.flatMap((command) => (command.name === 'MergeCoins' ? [command.destination] : []));
  if (merges.some((to) => to.kind === 'input' && inputs[to.index]?.isOwned !== true)) {
    throw new InvalidBytesError('expected merges into coins of the sender, got one into another object');
  }
  // A command's result may be the gas coin, so it counts like the gas coin itself.
  const usesGas = commands.some((command) => argumentsOf(command).some(({ kind }) => kind === 'gas'));
  if (isSponsored && usesGas && merges.length > 0) {
    throw new InvalidBytesError('expected merges of coins of one account, got the gas coin of a sponsor');
  }
}

function argumentsOf(command: Command): readonly Argument[] {
  if (command.name === 'TransferObjects') return [...command.objects, command.recipient];
  if (command.name === 'SplitCoins') return [command.coin, ...command.amounts];
  return [command.destination, ...command.sources];
}

function toViews(commands: readonly Command[], inputs: readonly Input[]): readonly SuiCommand[] {
  const merged = new Set(
    commands.flatMap((command) => (command.name === 'MergeCoins' ? outputKey(command.destination) : [])),
  );
  return commands.map((command): SuiCommand => {
    const { encoded } = command;
    if (command.name !== 'TransferObjects') return { commandName: command.name, encoded };
    const recipient = pureInput(command.recipient, inputs, 32);
    const amounts = command.objects.map((object) =>
      merged.has(outputKey(object)) ? undefined : splitAmount(object, commands, inputs),
    );
    const isKnown = amounts.every((amount) => amount !== undefined);
    return {
      commandName: 'TransferObjects',
      recipient: recipient === undefined ? undefined : bytesTo0xHex(recipient),
      amount: isKnown ? amounts.reduce((sum, amount) => sum + amount, 0n) : undefined,
      encoded,
    };
  });
}

/** Returns a key for a result. The whole result and its first output have the same key. */
function outputKey(argument: Argument): string {
  return argument.kind === 'result' ? `${argument.command}:${argument.output ?? 0}` : argument.kind;
}

/** Returns the amount that a coin got when it was split off. */
function splitAmount(
  object: Argument,
  commands: readonly Command[],
  inputs: readonly Input[],
): bigint | undefined {
  if (object.kind !== 'result') return undefined;
  const split = commands[object.command];
  if (split?.name !== 'SplitCoins') return undefined;
  if (object.output === undefined && split.amounts.length !== 1) return undefined;
  const amount = split.amounts[object.output ?? 0];
  const bytes = amount === undefined ? undefined : pureInput(amount, inputs, 8);
  return bytes === undefined ? undefined : createByteReader(bytes).u64();
}

function pureInput(argument: Argument, inputs: readonly Input[], length: number): Uint8Array | undefined {
  if (argument.kind !== 'input') return undefined;
  const bytes = inputs[argument.index]?.pure;
  return bytes?.length === length ? bytes : undefined;
}
