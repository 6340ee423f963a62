import { sha256 } from '@noble/hashes/sha2.js';
import { createBase58check, hex } from '@scure/base';
import { PolicyFormatError } from './policy-format-error.ts';

/**
 * How a field is compared. `decimal` holds fractions exactly; `hex` and `evm_address` ignore case; a `tron_address` is
 * the same whether written `T…` or as 41 and 40 hex digits.
 */
export type ValueKind = 'number' | 'decimal' | 'evm_address' | 'tron_address' | 'hex' | 'text';

/** A decimal number as an integer and the power of ten it is divided by. */
export interface Decimal {
  readonly digits: bigint;
  readonly scale: number;
}

/** What a condition found in the action. Several values (array elements, commands) are quantified by the rule's action. */
export type Observation =
  | { readonly state: 'present'; readonly values: readonly string[] }
  | { readonly state: 'absent'; readonly reason: string }
  | { readonly state: 'unreadable'; readonly reason: string };

export const present = (...values: string[]): Observation => ({ state: 'present', values });
export const absent = (reason: string): Observation => ({ state: 'absent', reason });
export const unreadable = (reason: string): Observation => ({ state: 'unreadable', reason });

const INTEGER = /^(?:-?[0-9]{1,100}|0x[0-9a-fA-F]{1,64})$/;
const DECIMAL = /^[0-9]{1,100}(?:\.[0-9]{1,100})?$/;
const EVM_ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const TRON_HEX_ADDRESS = /^41[0-9a-fA-F]{40}$/;
const TRON_ADDRESS_BYTES = 21;
const TRON_PREFIX = 0x41;
const base58check = createBase58check(sha256);
const HEX = /^0x(?:[0-9a-fA-F]{2})*$/;

/** Integer text, decimal or `0x` hex, to an exact integer. */
export function parseInteger(text: string): bigint | undefined {
  return INTEGER.test(text) ? BigInt(text) : undefined;
}

/** Decimal text such as `1.50` to its exact value. */
export function parseDecimal(text: string): Decimal | undefined {
  if (!DECIMAL.test(text)) return undefined;
  const [whole = '', fraction = ''] = text.split('.');
  return { digits: BigInt(whole + fraction), scale: fraction.length };
}

/** Negative, zero or positive as `a` is below, equal to or above `b`. */
export function compareDecimals(a: Decimal, b: Decimal): number {
  const scale = Math.max(a.scale, b.scale);
  const left = a.digits * 10n ** BigInt(scale - a.scale);
  const right = b.digits * 10n ** BigInt(scale - b.scale);
  return left < right ? -1 : left > right ? 1 : 0;
}

/**
 * Brings a condition's value into the form in which values of its kind are compared.
 * Throws PolicyFormatError when the text cannot be a value of the kind.
 */
export function requireValue(kind: ValueKind, text: string, pointer: string): string {
  switch (kind) {
    case 'number': {
      const value = parseInteger(text);
      if (value === undefined)
        throw new PolicyFormatError(pointer, `expected an integer, decimal or 0x hex, got \`${text}\``);
      return value.toString();
    }
    case 'decimal':
      if (parseDecimal(text) === undefined)
        throw new PolicyFormatError(pointer, `expected a decimal number, got \`${text}\``);
      return text;
    case 'evm_address':
      if (!EVM_ADDRESS.test(text))
        throw new PolicyFormatError(
          pointer,
          `expected an address of 0x and 40 hex characters, got \`${text}\``,
        );
      return text.toLowerCase();
    case 'tron_address': {
      const address = parseTronAddress(text);
      if (address === undefined) {
        throw new PolicyFormatError(
          pointer,
          `expected a Tron address, T… or 41 and 40 hex digits, got \`${text}\``,
        );
      }
      return address;
    }
    case 'hex':
      if (!HEX.test(text)) throw new PolicyFormatError(pointer, `expected 0x hex bytes, got \`${text}\``);
      return text.toLowerCase();
    case 'text':
      return text;
  }
}

/** A Tron address in either spelling as 41 and 40 lower-case hex digits. */
export function parseTronAddress(text: string): string | undefined {
  if (TRON_HEX_ADDRESS.test(text)) return text.toLowerCase();
  try {
    const bytes = base58check.decode(text);
    return bytes.length === TRON_ADDRESS_BYTES && bytes[0] === TRON_PREFIX ? hex.encode(bytes) : undefined;
  } catch {
    return undefined;
  }
}

/** The `T…` spelling of 41 and 40 hex digits. */
export function tronAddressText(addressHex: string): string {
  return base58check.encode(hex.decode(addressHex));
}
