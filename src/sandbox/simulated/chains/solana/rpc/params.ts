import { base58ToBytes, base64ToBytes } from '../../../../../engine/crypto/encoding.ts';
import { invalid, isRecord, RpcError } from '../../rpc-calls.ts';
import type { SolanaParts } from '../parts.ts';

// Parses the parameters of the Solana JSON-RPC, with the errors of real nodes.

export const SERVER_ERROR = -32_000;
export const PREFLIGHT_FAILURE = -32_002;
export const SIGNATURE_FAILURE = -32_003;
export const BLOCK_NOT_AVAILABLE = -32_004;
export const SCAN_ERROR = -32_012;
export const UNSUPPORTED_VERSION = -32_015;
const MIN_CONTEXT_SLOT_NOT_REACHED = -32_016;
export const INVALID_REQUEST = -32_600;

export type Commitment = 'processed' | 'confirmed' | 'finalized';
export type Options = Readonly<Record<string, unknown>>;

const MAX_TEXT = 100;

// The commitment levels by name, including older names that nodes still accept.
const commitments: Readonly<Record<string, Commitment>> = {
  ...{ processed: 'processed', confirmed: 'confirmed', finalized: 'finalized' },
  ...{ recent: 'processed', single: 'confirmed', singleGossip: 'confirmed' },
  ...{ root: 'finalized', max: 'finalized' },
};

export function addressOf(value: unknown): string {
  return bytesIn(value, 32);
}

export function signatureOf(value: unknown): string {
  return bytesIn(value, 64);
}

function bytesIn(value: unknown, size: number): string {
  if (typeof value !== 'string')
    throw invalid(`Invalid params: invalid type: ${typeOf(value)}, expected a string.`);
  if (value.length > MAX_TEXT) throw invalid('Invalid param: WrongSize');
  let bytes: Uint8Array;
  try {
    bytes = base58ToBytes(value);
  } catch {
    throw invalid('Invalid param: Invalid');
  }
  if (bytes.length !== size) throw invalid('Invalid param: WrongSize');
  return value;
}

export function optionsOf(value: unknown): Options {
  if (value === undefined || value === null) return {};
  if (isRecord(value)) return value;
  throw invalid(`Invalid params: invalid type: ${typeOf(value)}, expected an object.`);
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return 'sequence';
  return value === null ? 'null' : typeof value;
}

export function listOf(value: unknown, most: number): readonly unknown[] {
  if (!Array.isArray(value))
    throw invalid(`Invalid params: invalid type: ${typeOf(value)}, expected a sequence.`);
  if (value.length > most) throw invalid(`Too many inputs provided; max ${most}`);
  return value;
}

export function integerOf(value: unknown, name: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw invalid(`Invalid params: expected \`${name}\` as an integer that is not negative.`);
}

export function choiceOf<T extends string>(value: unknown, choices: readonly T[], byDefault: T): T {
  if (value === undefined || value === null) return byDefault;
  const found = choices.find((choice) => choice === value);
  if (found !== undefined) return found;
  const text = typeof value === 'string' ? value.slice(0, MAX_TEXT) : typeOf(value);
  const expected = choices.map((choice) => `\`${choice}\``).join(', ');
  throw invalid(`Invalid params: unknown variant \`${text}\`, expected one of ${expected}.`);
}

export function commitmentOf({ commitment }: Options, byDefault: Commitment = 'finalized'): Commitment {
  return commitments[choiceOf(commitment, Object.keys(commitments), byDefault)]!;
}

/** Returns the newest slot at a commitment level. */
export function slotAt(
  { blocks, finalityBlocks }: Pick<SolanaParts, 'blocks' | 'finalityBlocks'>,
  level: Commitment,
): number {
  const { number } = blocks.head();
  return level === 'finalized' ? Math.max(0, number - finalityBlocks) : number;
}

/** Checks the options that most methods have, and returns the context for the response. */
export function contextOf(parts: SolanaParts, options: Options) {
  commitmentOf(options);
  const slot = parts.blocks.head().number;
  requireSlot(slot, options);
  return { slot, apiVersion: NODE_VERSION };
}

export function requireSlot(slot: number, { minContextSlot }: Options): void {
  if (minContextSlot === undefined || minContextSlot === null) return;
  if (integerOf(minContextSlot, 'minContextSlot') <= slot) return;
  throw new RpcError(MIN_CONTEXT_SLOT_NOT_REACHED, 'Minimum context slot has not been reached', {
    contextSlot: slot,
  });
}

/** CHOICE: the version that the node reports. Its errors and formats are those of this version. */
export const NODE_VERSION = '3.0.0';

const MAX_WIRE_BYTES = 1_232;
const MAX_ENCODED = { base58: 1_683, base64: 1_644 };
const TYPE = 'solana_transaction::versioned::VersionedTransaction';

/** Decodes an encoded transaction or message. */
export function wireOf(value: unknown, encoding: 'base58' | 'base64'): Uint8Array {
  if (typeof value !== 'string')
    throw invalid(`Invalid params: invalid type: ${typeOf(value)}, expected a string.`);
  const most = MAX_ENCODED[encoding];
  if (value.length > most) {
    throw invalid(
      `${encoding} encoded ${TYPE} too large: ${value.length} bytes (max: encoded/raw ${most}/${MAX_WIRE_BYTES})`,
    );
  }
  let bytes: Uint8Array;
  try {
    bytes = encoding === 'base58' ? base58ToBytes(value) : base64ToBytes(value);
  } catch {
    throw invalid(`invalid ${encoding} encoding: expected ${encoding}`);
  }
  if (bytes.length > MAX_WIRE_BYTES) {
    throw invalid(`decoded ${TYPE} too large: ${bytes.length} bytes (max: ${MAX_WIRE_BYTES} bytes)`);
  }
  return bytes;
}

declare global {
  interface JSON {
    /** Creates a value that `JSON.stringify` writes as this text. The compiler does not know this function yet. */
    rawJSON(text: string): object;
  }
}

/**
 * Prepares a value for serialization, so that 64-bit integers are written with all their digits, as nodes write them.
 */
export function withIntegers(value: unknown): unknown {
  if (typeof value === 'bigint') {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : JSON.rawJSON(String(value));
  }
  if (Array.isArray(value)) return value.map(withIntegers);
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withIntegers(each)]));
}
