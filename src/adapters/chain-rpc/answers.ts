import { ChainUnavailableError } from '../unavailable-errors.ts';

/*
 * Validates responses of nodes. Node implementations and proxies differ, and an unchecked value could end up as
 * `undefined` in a balance.
 */

/** @throws ChainUnavailableError for a response that does not match the method's definition. */
export function refuseAnswer(method: string): never {
  throw new ChainUnavailableError(`expected a valid response to ${method} from the node`);
}

/** Parses a 0x quantity of up to 256 bits. */
export function readQuantity(method: string, value: unknown): bigint {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]{1,64}$/.test(value)) refuseAnswer(method);
  return BigInt(value);
}

/** Parses 0x data. */
export function readBytes(method: string, value: unknown): Uint8Array {
  if (typeof value !== 'string' || !/^0x([0-9a-fA-F]{2})*$/.test(value)) refuseAnswer(method);
  return new Uint8Array(Buffer.from(value.slice(2), 'hex'));
}

export function readRecord(method: string, value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) refuseAnswer(method);
  return value as Record<string, unknown>;
}

/** Parses an exact non-negative integer. */
export function readInteger(method: string, value: unknown): bigint {
  if (typeof value === 'bigint' && value >= 0n) return value;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) refuseAnswer(method);
  return BigInt(value);
}

export function readText(method: string, value: unknown): string {
  if (typeof value !== 'string') refuseAnswer(method);
  return value;
}

export function readList(method: string, value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) refuseAnswer(method);
  return value;
}
