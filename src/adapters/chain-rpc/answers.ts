import { ChainUnavailableError } from '../chain-unavailable-error.ts';

/*
 * What nodes answer is checked where it is read: a node of another make, or one behind a proxy that answers for it,
 * must not put `undefined` into a balance.
 */

/** An answer of another form than the method has. Throws always. */
export function unexpected(method: string): never {
  throw new ChainUnavailableError(`the node answered ${method} in a form that was not expected`);
}

/** A 0x quantity. */
export function quantity(method: string, value: unknown): bigint {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]+$/.test(value)) unexpected(method);
  return BigInt(value);
}

/** 0x data of whole bytes. */
export function dataBytes(method: string, value: unknown): Uint8Array {
  if (typeof value !== 'string' || !/^0x([0-9a-fA-F]{2})*$/.test(value)) unexpected(method);
  return new Uint8Array(Buffer.from(value.slice(2), 'hex'));
}

export function record(method: string, value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) unexpected(method);
  return value as Record<string, unknown>;
}

/** A whole number from 0 up, exact. */
export function integer(method: string, value: unknown): bigint {
  if (typeof value === 'bigint' && value >= 0n) return value;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) unexpected(method);
  return BigInt(value);
}

export function text(method: string, value: unknown): string {
  if (typeof value !== 'string') unexpected(method);
  return value;
}

export function list(method: string, value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) unexpected(method);
  return value;
}
