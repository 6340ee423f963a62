import { sha256 } from '@noble/hashes/sha2.js';
import { base58, base58xrp, createBase58check, hex } from '@scure/base';
import { PolicyFormatError } from './condition-source.ts';

/**
 * How a field is compared.
 * - `decimal` compares fractions exactly.
 * - `hex` and `evm_address` ignore case.
 * - `tron_address` treats `T…` and `41` + 40 hex digits as equal.
 * - `sui_address` ignores leading zeros.
 * - `xrpl_address` accepts X-addresses without a tag, `xrpl_currency` three characters or 40 hex digits.
 * - `account` is any string: an EVM or Tron address is compared as such, anything else as a string.
 * - The other kinds are compared as strings and differ only in the values that they accept.
 */
export type ValueKind =
  | 'number'
  | 'decimal'
  | 'boolean'
  | 'evm_address'
  | 'tron_address'
  | 'solana_address'
  | 'xrpl_address'
  | 'xrpl_currency'
  | 'sui_address'
  | 'account'
  | 'hex'
  | 'text';

/** The decimal number `digits / 10^scale`. */
interface Decimal {
  readonly digits: bigint;
  readonly scale: number;
}

/**
 * The result of reading a field from the action. If there are several values (array elements, commands), the rule's
 * action determines whether all of them or only one must match.
 */
export type Observation =
  | { readonly state: 'present'; readonly values: readonly string[] }
  | { readonly state: 'absent'; readonly reason: string }
  | { readonly state: 'unreadable'; readonly reason: string };

export const present = (value: string): Observation => ({ state: 'present', values: [value] });
// Takes an array, because a request may have more elements than a function call accepts as arguments.
export const presentAll = (values: readonly string[]): Observation => ({ state: 'present', values });
export const absent = (reason: string): Observation => ({ state: 'absent', reason });
export const unreadable = (reason: string): Observation => ({ state: 'unreadable', reason });

const INTEGER = /^(?:-?[0-9]{1,100}|0x[0-9a-fA-F]{1,64})$/;
const DECIMAL = /^[0-9]{1,100}(?:\.[0-9]{1,100})?$/;
const EVM_ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const TRON_HEX_ADDRESS = /^41[0-9a-fA-F]{40}$/;
const TRON_ADDRESS_BYTES = 21;
const TRON_PREFIX = 0x41;
const MAX_TRON_ADDRESS = 34;
const base58check = createBase58check(sha256);
const HEX = /^0x(?:[0-9a-fA-F]{2})*$/;
const SUI_ADDRESS = /^0x[0-9a-fA-F]{1,64}$/;
const SOLANA_ADDRESS_BYTES = 32;
const MAX_SOLANA_ADDRESS = 44;

/** Returns whether the string is `0x` and 40 hex digits. */
export function isEvmAddress(text: string): boolean {
  return EVM_ADDRESS.test(text);
}

/** Parses an integer in decimal or `0x` hex. Returns undefined for any other string. */
function parseInteger(text: string): bigint | undefined {
  return INTEGER.test(text) ? BigInt(text) : undefined;
}

/** Parses a decimal such as `1.50` exactly. Returns undefined for any other string. */
export function parseDecimal(text: string): Decimal | undefined {
  if (!DECIMAL.test(text)) return undefined;
  const [whole = '', fraction = ''] = text.split('.');
  return { digits: BigInt(whole + fraction), scale: fraction.length };
}

/** Returns the shortest notation of a decimal: without superfluous zeros before or after it. */
export function shortestDecimal(text: string): string {
  const [whole = '', fraction = ''] = text.split('.');
  const tail = fraction.replace(/(?<!0)0+$/, '');
  return BigInt(whole).toString() + (tail === '' ? '' : `.${tail}`);
}

/** Returns a number below, equal to or above 0 if `a` is below, equal to or above `b`. */
export function compareDecimals(a: Decimal, b: Decimal): number {
  const scale = Math.max(a.scale, b.scale);
  const left = a.digits * 10n ** BigInt(scale - a.scale);
  const right = b.digits * 10n ** BigInt(scale - b.scale);
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Returns the size of a type `bytes1` … `bytes32`, or undefined for other types. */
export function sizeOfType(type: string): number | undefined {
  const [, size] = /^bytes([0-9]+)$/.exec(type) ?? [];
  return size === undefined ? undefined : Number(size);
}

interface Kind {
  /** The end of the error message "expected …". */
  readonly expected: string;
  /** Converts a value to the form that is compared. Returns undefined if the string is not a value of the kind. */
  readonly normalize: (text: string) => string | undefined;
}

const KINDS: Readonly<Record<ValueKind, Kind>> = {
  number: {
    expected: 'an integer in decimal or 0x hex',
    normalize: (text) => parseInteger(text)?.toString(),
  },
  decimal: {
    expected: 'a decimal number',
    normalize: (text) => (parseDecimal(text) === undefined ? undefined : text),
  },
  boolean: {
    expected: '`true` or `false`',
    normalize: (text) => (text === 'true' || text === 'false' ? text : undefined),
  },
  evm_address: {
    expected: 'an address of 0x and 40 hex digits',
    normalize: (text) => (isEvmAddress(text) ? text.toLowerCase() : undefined),
  },
  tron_address: { expected: 'a Tron address, T… or 41 and 40 hex digits', normalize: parseTronAddress },
  solana_address: {
    expected: 'a Solana address, base58 of 32 bytes',
    normalize: (text) => (isSolanaAddress(text) ? text : undefined),
  },
  xrpl_address: {
    expected: 'an XRP Ledger address, r… or X… without a tag',
    normalize: readXrplAddress,
  },
  // Accepts any string, because stored rules and malformed amounts may contain one.
  xrpl_currency: { expected: 'a currency', normalize: (text) => readXrplCurrency(text) ?? text },
  sui_address: {
    expected: 'a Sui address, 0x and up to 64 hex digits',
    normalize: (text) =>
      SUI_ADDRESS.test(text) ? `0x${text.slice(2).toLowerCase().padStart(64, '0')}` : undefined,
  },
  account: {
    expected: 'an account',
    normalize: (text) => (isEvmAddress(text) ? text.toLowerCase() : (parseTronAddress(text) ?? text)),
  },
  hex: { expected: '0x hex bytes', normalize: (text) => (HEX.test(text) ? text.toLowerCase() : undefined) },
  text: { expected: 'text', normalize: (text) => text },
};

/**
 * Kinds whose observed values need no normalization, because they come from decoded bytes and have only one notation.
 */
const COMPARED_AS_TEXT: ReadonlySet<ValueKind> = new Set(['text', 'solana_address', 'xrpl_address']);

/**
 * Normalizes a condition's value for its kind.
 *
 * @throws PolicyFormatError if the string is not a value of the kind.
 */
export function requireValue(kind: ValueKind, text: string, pointer: string): string {
  const { expected, normalize } = KINDS[kind];
  const value = normalize(text);
  if (value === undefined) throw new PolicyFormatError(pointer, `expected ${expected}, got \`${text}\``);
  return value;
}

/** Normalizes observed values for their kind. Returns unreadable if one is not a value of the kind. */
export function readAs(kind: ValueKind, observed: Observation): Observation {
  if (observed.state !== 'present' || COMPARED_AS_TEXT.has(kind)) return observed;
  const { expected, normalize } = KINDS[kind];
  const values: string[] = [];
  for (const text of observed.values) {
    const value = normalize(text);
    if (value === undefined) return unreadable(`expected ${expected}, got \`${text}\``);
    values.push(value);
  }
  return presentAll(values);
}

function isSolanaAddress(text: string): boolean {
  if (text.length > MAX_SOLANA_ADDRESS) return false;
  try {
    return base58.decode(text).length === SOLANA_ADDRESS_BYTES;
  } catch {
    return false;
  }
}

/**
 * Converts a Tron address in either notation to `41` + 40 lower-case hex digits. Returns undefined for any other
 * string.
 */
export function parseTronAddress(text: string): string | undefined {
  if (TRON_HEX_ADDRESS.test(text)) return text.toLowerCase();
  if (text.length > MAX_TRON_ADDRESS) return undefined;
  try {
    const bytes = base58check.decode(text);
    return bytes.length === TRON_ADDRESS_BYTES && bytes[0] === TRON_PREFIX ? hex.encode(bytes) : undefined;
  } catch {
    return undefined;
  }
}

/** Converts an address from `41` + 40 hex digits to the `T…` notation. */
export function tronAddressText(addressHex: string): string {
  return base58check.encode(hex.decode(addressHex));
}

// Addresses and currencies of the XRP Ledger.

const XRPL_ACCOUNT_BYTES = 20;
const XRPL_CHECKSUM_BYTES = 4;
const XRPL_MAX_ADDRESS = 47;
const XRPL_CLASSIC_PREFIX = '00';
// X-addresses of the main network and of test networks. Source: XLS-5.
const XRPL_X_PREFIXES = ['0544', '0493'];
/** The flag byte and the tag of an X-address without a tag. */
const NO_TAG = '00'.repeat(9);
const XRPL_CLASSIC = /^00[0-9a-f]{40}$/;
const XRPL_EXTENDED = /^(?:0544|0493)([0-9a-f]{40})(?:00){9}$/;

/**
 * Converts an XRPL address to its classic form (r…). Returns undefined for any other string, and for an X-address
 * with a tag, because a tag identifies more than an account.
 */
function readXrplAddress(text: string): string | undefined {
  const payload = decodeChecked(text);
  if (XRPL_CLASSIC.test(payload)) return text;
  const [, account] = XRPL_EXTENDED.exec(payload) ?? [];
  return account === undefined ? undefined : encodeChecked(XRPL_CLASSIC_PREFIX + account);
}

/** Returns the X-addresses of a classic address, without a tag, for the main network and for test networks. */
export function xrplXAddresses(classic: string): readonly string[] {
  const account = decodeChecked(classic).slice(XRPL_CLASSIC_PREFIX.length);
  if (account.length !== 2 * XRPL_ACCOUNT_BYTES) return [];
  return XRPL_X_PREFIXES.map((prefix) => encodeChecked(prefix + account + NO_TAG));
}

/** Returns base58xrp(payload || first 4 bytes of sha256(sha256(payload))). */
function encodeChecked(payloadHex: string): string {
  const payload = hex.decode(payloadHex);
  return base58xrp.encode(Uint8Array.of(...payload, ...checksumOf(payload)));
}

/** Decodes base58xrp and returns the payload as hex, or an empty string if the checksum is invalid. */
function decodeChecked(text: string): string {
  if (text.length > XRPL_MAX_ADDRESS) return '';
  try {
    const bytes = base58xrp.decode(text);
    const payload = bytes.subarray(0, -XRPL_CHECKSUM_BYTES);
    const isIntact = hex.encode(checksumOf(payload)) === hex.encode(bytes.subarray(-XRPL_CHECKSUM_BYTES));
    return isIntact ? hex.encode(payload) : '';
  } catch {
    return '';
  }
}

function checksumOf(payload: Uint8Array): Uint8Array {
  return sha256(sha256(payload)).subarray(0, XRPL_CHECKSUM_BYTES);
}

const XRPL_CODE = /^[A-Za-z0-9?!@#$%^&*(){}[\]|]{3}$/;
const XRPL_CURRENCY_HEX = /^[0-9A-F]{40}$/;
/** 12 zero bytes || code (3 bytes) || 5 zero bytes. Source: XRPL docs, currency formats. */
const XRPL_STANDARD_CODE = /^0{24}([0-9A-F]{6})0{10}$/;
const XRPL_NATIVE_CODE = 'XRP';

/**
 * Converts a currency code to the notation of the ledger's codec: three characters if possible, else 40 upper-case
 * hex digits. Returns undefined for any other string, and for the code of the native currency, which no issued amount
 * has.
 */
export function readXrplCurrency(text: string): string | undefined {
  if (XRPL_CODE.test(text)) return text === XRPL_NATIVE_CODE ? undefined : text;
  const upper = text.toUpperCase();
  if (!XRPL_CURRENCY_HEX.test(upper)) return undefined;
  const code = Buffer.from(XRPL_STANDARD_CODE.exec(upper)?.[1] ?? '', 'hex').toString('latin1');
  return XRPL_CODE.test(code) && code !== XRPL_NATIVE_CODE ? code : upper;
}

/** Converts a currency code of three characters to its 40 hex digits. */
export function xrplCurrencyHex(code: string): string | undefined {
  if (!XRPL_CODE.test(code)) return undefined;
  return `${'0'.repeat(24)}${hex.encode(Buffer.from(code, 'latin1')).toUpperCase()}${'0'.repeat(10)}`;
}
