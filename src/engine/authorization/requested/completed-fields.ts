import { RequestTermsError } from '../../actions/request-terms-error.ts';

// Compares a requested transaction with the transaction in which the server has filled in fields.

export type Fields = Readonly<Record<string, unknown>>;

/** The fields of an EVM transaction that the server fills in. */
export const completedOnEthereum: ReadonlySet<string> = new Set([
  ...['type', 'chain_id', 'from', 'nonce', 'gas_limit'],
  ...['gas_price', 'max_fee_per_gas', 'max_priority_fee_per_gas'],
]);

/** Fields that contain numbers, in hex or decimal notation. */
const quantities: ReadonlySet<string> = new Set([
  'value',
  ...[...completedOnEthereum].filter((name) => name !== 'from'),
]);

/** The fields of a Tron transaction that the server fills in. */
export const completedOnTron: ReadonlySet<string> = new Set([
  ...['ref_block_bytes', 'ref_block_hash', 'expiration', 'timestamp'],
]);

/** Returns whether `given` has every field of `asked` unchanged and, in addition, only fields that may be filled in. */
export function isCompletedBy(asked: Fields, given: Fields, fillable: ReadonlySet<string>): boolean {
  const isKept = ([name, value]: [string, unknown]) =>
    value === undefined ||
    (quantities.has(name) && isSameQuantity(value, given[name])) ||
    isSameText(value, given[name]);
  const isAllowed = ([name, value]: [string, unknown]) =>
    value === undefined || Object.hasOwn(asked, name) || fillable.has(name);
  return Object.entries(asked).every(isKept) && Object.entries(given).every(isAllowed);
}

/**
 * Returns whether the object has only these fields.
 *
 * INVARIANT: policies never evaluate a body field that does not describe what is signed. The signer also reads bodies
 * that no server has validated.
 */
export function hasOnly(fields: object, names: readonly string[]): boolean {
  return Object.keys(fields).every((name) => names.includes(name));
}

/**
 * Returns whether the object has all required fields and no fields other than these and the optional ones, and whether
 * all of them are strings.
 */
export function areTexts(
  fields: unknown,
  names: readonly string[],
  optional: readonly string[] = [],
): fields is Readonly<Record<string, string>> {
  return (
    typeof fields === 'object' &&
    fields !== null &&
    hasOnly(fields, [...names, ...optional]) &&
    names.every((name) => typeof (fields as Fields)[name] === 'string') &&
    optional.every((name) => ['undefined', 'string'].includes(typeof (fields as Fields)[name]))
  );
}

/**
 * Calls `read`, which reads the terms of a body. Returns undefined if it throws RequestTermsError, that is, for a body
 * that servers reject.
 */
export function acceptedTerms<Terms>(read: () => Terms): Terms | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof RequestTermsError) return undefined;
    throw error;
  }
}

/** Fields that the body of every wallet action can have. */
export const actionFields: readonly string[] = ['nonce', 'reference_id'];

function isSameQuantity(one: unknown, other: unknown): boolean {
  const first = quantityOf(one);
  return first !== undefined && first === quantityOf(other);
}

function quantityOf(value: unknown): bigint | undefined {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value);
  if (typeof value !== 'string' || !/^(0x[0-9a-f]{1,64}|[0-9]{1,78})$/i.test(value)) return undefined;
  return BigInt(value);
}

/** Compares strings, such as addresses and calldata, regardless of case, and other values by their JSON. */
function isSameText(one: unknown, other: unknown): boolean {
  if (typeof one === 'string' && typeof other === 'string') return one.toLowerCase() === other.toLowerCase();
  return isSame(one, other);
}

/** Returns whether two values have the same canonical JSON (RFC 8785). Members that are undefined are left out. */
export function isSame(one: unknown, other: unknown): boolean {
  if (one === undefined || other === undefined) return false;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) {
    return one === other;
  }
  if (Array.isArray(one) || Array.isArray(other)) {
    const areLists = Array.isArray(one) && Array.isArray(other) && one.length === other.length;
    return areLists && one.every((item, index) => isSame(item, other[index]));
  }
  const names = namesOf(one);
  return names.length === namesOf(other).length && names.every((name) => hasSame(one, other, name));
}

const namesOf = (value: object): string[] =>
  Object.keys(value).filter((name) => (value as Record<string, unknown>)[name] !== undefined);

function hasSame(one: object, other: object, name: string): boolean {
  const [first, second] = [one, other] as Record<string, unknown>[];
  return Object.hasOwn(second!, name) && isSame(first![name], second![name]);
}
