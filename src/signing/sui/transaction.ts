import { type ByteReader, createByteReader, InvalidBytesError } from '../../crypto/byte-reader.ts';
import { bytesTo0xHex } from '../../crypto/encoding.ts';
import { readBcsBool, readBcsBytes, readBcsMany, readBcsVariant } from '../bcs.ts';
import { InvalidTransactionError } from '../signing-errors.ts';

/** A command of a programmable transaction as policies see it. */
export type SuiCommand =
  | {
      readonly commandName: 'TransferObjects';
      /** 0x and 64 hex digits; undefined when it is not written in the transaction. */
      readonly recipient: string | undefined;
      /**
       * Sum of the coins transferred, in the coin's base units; undefined unless every object is a coin that
       * this transaction split off with a written amount and did not merge into.
       */
      readonly amount: bigint | undefined;
    }
  | { readonly commandName: 'SplitCoins' }
  | { readonly commandName: 'MergeCoins' };

export interface SuiTransaction {
  /** 0x and 64 hex digits. */
  readonly sender: string;
  /** Who pays the gas; other than the sender when sponsored. */
  readonly gasOwner: string;
  /** MIST. */
  readonly gasBudget: bigint;
  readonly commands: readonly SuiCommand[];
}

type Argument =
  | { readonly kind: 'gas' }
  | { readonly kind: 'input'; readonly index: number }
  /** `output` is undefined where the whole result is meant. */
  | { readonly kind: 'result'; readonly command: number; readonly output: number | undefined };

type Command =
  | { readonly name: 'TransferObjects'; readonly objects: readonly Argument[]; readonly recipient: Argument }
  | { readonly name: 'SplitCoins'; readonly amounts: readonly Argument[] }
  | { readonly name: 'MergeCoins'; readonly destination: Argument };

// Intent { scope TransactionData 0, version 0, app Sui 0 }
const TRANSACTION_INTENT = 0;

/**
 * An intent message to the transaction in it, for policies; undefined when the intent is another, such as a
 * personal message. Commands other than TransferObjects, SplitCoins and MergeCoins are not known here.
 * Throws InvalidTransactionError when a transaction is not decoded to its last byte: then nothing can be said
 * about it. Source: sui-types, transaction.rs.
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
  readBcsMany(reader, () => skipObjectRef(reader));
  const gasOwner = readAddress(reader);
  reader.u64();
  const gasBudget = reader.u64();
  skipExpiration(reader);
  return {
    sender,
    gasOwner,
    gasBudget,
    commands: commands.map((command) => toView(command, commands, inputs)),
  };
}

/** The bytes of a pure input; undefined for an object. */
type Input = Uint8Array | undefined;

// CallArg: 0 Pure, 1 Object { 0 owned, 1 shared, 2 receiving }
function readInput(reader: ByteReader): Input {
  const variant = readBcsVariant(reader);
  if (variant === 0) return readBcsBytes(reader);
  if (variant !== 1) throw new InvalidBytesError(`expected a pure or object input, got variant ${variant}`);
  const object = readBcsVariant(reader);
  if (object === 0 || object === 2) {
    skipObjectRef(reader);
    return undefined;
  }
  if (object !== 1) throw new InvalidBytesError(`expected a known object, got variant ${object}`);
  reader.bytes(32);
  reader.u64();
  readBcsBool(reader);
  return undefined;
}

function readCommand(reader: ByteReader): Command {
  const variant = readBcsVariant(reader);
  if (variant === 1) {
    const objects = readBcsMany(reader, () => readArgument(reader));
    return { name: 'TransferObjects', objects, recipient: readArgument(reader) };
  }
  if (variant === 2) {
    readArgument(reader);
    return { name: 'SplitCoins', amounts: readBcsMany(reader, () => readArgument(reader)) };
  }
  if (variant === 3) {
    const destination = readArgument(reader);
    readBcsMany(reader, () => readArgument(reader));
    return { name: 'MergeCoins', destination };
  }
  throw new InvalidBytesError(`expected TransferObjects, SplitCoins or MergeCoins, got variant ${variant}`);
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

// TransactionExpiration: 0 none, 1 epoch, 2 valid during { four optional bounds, chain, nonce }
function skipExpiration(reader: ByteReader): void {
  const variant = readBcsVariant(reader);
  if (variant === 0) return;
  if (variant === 1) {
    reader.u64();
    return;
  }
  if (variant !== 2) throw new InvalidBytesError(`expected a known expiration, got variant ${variant}`);
  for (let bound = 0; bound < 4; bound += 1) {
    if (readBcsBool(reader)) reader.u64();
  }
  skipDigest(reader);
  reader.u32();
}

function expectVariant(reader: ByteReader, expected: number, what: string): void {
  const variant = readBcsVariant(reader);
  if (variant !== expected) throw new InvalidBytesError(`expected ${what}, got variant ${variant}`);
}

function toView(command: Command, commands: readonly Command[], inputs: readonly Input[]): SuiCommand {
  if (command.name !== 'TransferObjects') return { commandName: command.name };
  const amounts = command.objects.map((object) => splitAmount(object, commands, inputs));
  const isKnown = amounts.every((amount) => amount !== undefined);
  const recipient = pureInput(command.recipient, inputs, 32);
  return {
    commandName: 'TransferObjects',
    recipient: recipient === undefined ? undefined : bytesTo0xHex(recipient),
    amount: isKnown ? amounts.reduce((sum, amount) => sum + amount, 0n) : undefined,
  };
}

// What a coin holds that was split off here, unless coins were merged into it.
function splitAmount(
  object: Argument,
  commands: readonly Command[],
  inputs: readonly Input[],
): bigint | undefined {
  if (object.kind !== 'result') return undefined;
  const split = commands[object.command];
  if (split?.name !== 'SplitCoins') return undefined;
  if (object.output === undefined && split.amounts.length !== 1) return undefined;
  const output = object.output ?? 0;
  const isMergedInto = commands.some(
    (command) =>
      command.name === 'MergeCoins' &&
      command.destination.kind === 'result' &&
      command.destination.command === object.command &&
      (command.destination.output ?? 0) === output,
  );
  const amount = split.amounts[output];
  if (isMergedInto || amount === undefined) return undefined;
  const bytes = pureInput(amount, inputs, 8);
  return bytes === undefined ? undefined : createByteReader(bytes).u64();
}

function pureInput(argument: Argument, inputs: readonly Input[], length: number): Uint8Array | undefined {
  if (argument.kind !== 'input') return undefined;
  const bytes = inputs[argument.index];
  return bytes?.length === length ? bytes : undefined;
}
