import { ChainUnavailableError } from '../unavailable-errors.ts';

/*
 * Validates responses of nodes: node implementations and proxies differ, and an unchecked value could end up as
 * `undefined` in a balance.
 */

/** Throws ChainUnavailableError for a response that the method does not define. */
export function unexpected(method: string): never {
  throw new ChainUnavailableError(`expected a valid response to ${method} from the node`);
}

/** Parses a 0x quantity of up to 256 bits. */
export function quantity(method: string, value: unknown): bigint {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]{1,64}$/.test(value)) unexpected(method);
  return BigInt(value);
}

/** Parses 0x data. */
export function dataBytes(method: string, value: unknown): Uint8Array {
  if (typeof value !== 'string' || !/^0x([0-9a-fA-F]{2})*$/.test(value)) unexpected(method);
  return new Uint8Array(Buffer.from(value.slice(2), 'hex'));
}

export function record(method: string, value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) unexpected(method);
  return value as Record<string, unknown>;
}

/** An exact non-negative integer. */
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

/**
 * CHOICE: blocks until a deposit counts as final, where the operator sets nothing. Exchanges use similar numbers;
 * Polygon has seen reorganizations of dozens of blocks.
 */
const USUAL = 12;

const byChain: Readonly<Record<string, number>> = {
  'eip155:137': 128,
  'eip155:80002': 128,
};

/** The confirmations of a chain: those that the operator configured, otherwise the defaults. 0: not followed. */
export function confirmationsOf(caip2: string, configured: number | undefined): number {
  return configured ?? byChain[caip2] ?? USUAL;
}
