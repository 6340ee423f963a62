import type { SetCandidate } from './action.ts';
import {
  compareDecimals,
  isEvmAddress,
  parseDecimal,
  parseTronAddress,
  shortestDecimal,
  tronAddressText,
  type ValueKind,
  xrplCurrencyHex,
  xrplXAddresses,
} from './values.ts';

/** The operators that a condition can use. */
export type Operator =
  | 'eq'
  | 'neq'
  | 'gt'
  | 'gte'
  | 'lt'
  | 'lte'
  | 'in'
  | 'in_condition_set'
  | 'contains'
  | 'starts_with'
  | 'ends_with';

const EQUALITY: readonly Operator[] = ['eq', 'neq', 'in', 'in_condition_set'];
export const ORDERING: readonly Operator[] = [...EQUALITY, 'gt', 'gte', 'lt', 'lte'];
export const TEXT_SEARCH: readonly Operator[] = [...EQUALITY, 'contains', 'starts_with', 'ends_with'];

/** Returns the operators that values of a kind support. A field can restrict them further. */
export function operatorsOf(kind: ValueKind): readonly Operator[] {
  return kind === 'number' || kind === 'decimal' ? ORDERING : EQUALITY;
}

/** Returns a number below, equal to or above 0 if the observed number is below, equal to or above the expected one. */
function compare(kind: ValueKind, observed: string, expected: string): number {
  // INVARIANT: both strings were normalized for their kind, so they can be parsed.
  if (kind === 'decimal') return compareDecimals(parseDecimal(observed)!, parseDecimal(expected)!);
  return compareIntegers(observed, expected);
}

/** Compares integers in their shortest decimal notation, without parsing them. */
function compareIntegers(left: string, right: string): number {
  const isNegative = left.startsWith('-');
  if (isNegative !== right.startsWith('-')) return isNegative ? -1 : 1;
  const isLess = left.length === right.length ? left < right : left.length < right.length;
  if (left === right) return 0;
  return isLess === isNegative ? 1 : -1;
}

function equal(kind: ValueKind, observed: string, expected: string): boolean {
  return kind === 'decimal' ? compare(kind, observed, expected) === 0 : observed === expected;
}

/**
 * Compares one observed value with the condition's values, all normalized for their kind. `expected` has one entry,
 * except for `in`. `in_condition_set` is evaluated elsewhere.
 */
export function holds(
  operator: Exclude<Operator, 'in_condition_set'>,
  kind: ValueKind,
  observed: string,
  expected: readonly string[],
): boolean {
  // INVARIANT: a condition has at least one value; compile.ts rejects an empty `in`.
  const first = expected[0]!;
  switch (operator) {
    case 'eq':
      return equal(kind, observed, first);
    case 'neq':
      return !equal(kind, observed, first);
    case 'in':
      return expected.some((value) => equal(kind, observed, value));
    case 'contains':
      return containsText(observed, first);
    case 'starts_with':
      return observed.startsWith(first);
    case 'ends_with':
      return observed.endsWith(first);
    case 'gt':
      return compare(kind, observed, first) > 0;
    case 'gte':
      return compare(kind, observed, first) >= 0;
    case 'lt':
      return compare(kind, observed, first) < 0;
    case 'lte':
      return compare(kind, observed, first) <= 0;
  }
}

/**
 * `String.includes` takes linear time for parts of this length, but quadratic time for longer parts (V8,
 * `string-search.h`).
 */
const MAX_QUICK_PART = 250;

/**
 * Returns whether `text` contains `part`. Takes linear time even for a hostile `part`, because callers choose both.
 * Source: Knuth, Morris and Pratt, 1977.
 */
export function containsText(text: string, part: string): boolean {
  if (part.length <= MAX_QUICK_PART) return text.includes(part);
  // borders[i]: the length of the longest proper prefix of part[0..i] that is also its suffix
  const borders = new Uint32Array(part.length);
  for (let at = 1, border = 0; at < part.length; at += 1) {
    while (border > 0 && part.charCodeAt(at) !== part.charCodeAt(border)) border = borders[border - 1]!;
    if (part.charCodeAt(at) === part.charCodeAt(border)) border += 1;
    borders[at] = border;
  }
  for (let at = 0, matched = 0; at < text.length; at += 1) {
    while (matched > 0 && text.charCodeAt(at) !== part.charCodeAt(matched)) matched = borders[matched - 1]!;
    if (text.charCodeAt(at) === part.charCodeAt(matched)) matched += 1;
    if (matched === part.length) return true;
  }
  return false;
}

/** This many characters can be searched, or looked up in a condition set, in the time of one short comparison. */
const CHARACTERS_AT_ONCE = 8;
const READ_WHOLE: ReadonlySet<Operator> = new Set<Operator>(['contains', 'in_condition_set']);

/** Returns the cost of comparing this value, counted in comparisons of short values. */
export function workOfComparison(operator: Operator, observed: string): number {
  return READ_WHOLE.has(operator) ? 1 + Math.floor(observed.length / CHARACTERS_AT_ONCE) : 1;
}

const NOT_LOOKED_UP: SetCandidate = { exact: [], ignoringCase: [], numbers: [] };

/** Returns the notations of an observed value that are looked up in a condition set. */
export function setCandidate(kind: ValueKind, observed: string): SetCandidate {
  switch (kind) {
    case 'number':
      return numberCandidate(observed);
    case 'decimal':
      return decimalCandidate(observed);
    case 'tron_address':
      return { ...NOT_LOOKED_UP, exact: [tronAddressText(observed)], ignoringCase: [observed] };
    case 'xrpl_address':
      return { ...NOT_LOOKED_UP, exact: [observed, ...xrplXAddresses(observed)] };
    case 'xrpl_currency': {
      const hex = xrplCurrencyHex(observed) ?? observed;
      return { ...NOT_LOOKED_UP, exact: [observed], ignoringCase: [hex.toLowerCase()] };
    }
    case 'sui_address':
      return { ...NOT_LOOKED_UP, numbers: [hexKey(observed)] };
    case 'account':
      if (isEvmAddress(observed)) return { ...NOT_LOOKED_UP, ignoringCase: [observed] };
      return setCandidate(parseTronAddress(observed) === undefined ? 'text' : 'tron_address', observed);
    case 'evm_address':
    case 'hex':
      return { ...NOT_LOOKED_UP, ignoringCase: [observed] };
    default:
      return { ...NOT_LOOKED_UP, exact: [observed] };
  }
}

function numberCandidate(observed: string): SetCandidate {
  if (observed.startsWith('-')) return { ...NOT_LOOKED_UP, numbers: [numberKey(observed)] };
  const negative = observed === '0' ? [numberKey('-0')] : [];
  return { ...NOT_LOOKED_UP, numbers: [numberKey(observed), hexKey(observed), ...negative] };
}

function decimalCandidate(observed: string): SetCandidate {
  const key = numberKey(shortestDecimal(observed));
  return { ...NOT_LOOKED_UP, numbers: key.includes('.') ? [key] : [key, `${key}.`] };
}

function hexKey(number: string): string {
  return numberKey(`0x${BigInt(number).toString(16)}`);
}

/**
 * Returns a key that is equal for two notations of a number that differ only in leading zeros or, for decimals, in
 * trailing zeros. INVARIANT: it equals `NUMBER_KEY` of condition set items, in SQL.
 */
export function numberKey(text: string): string {
  if (text.startsWith('.') || text.endsWith('.') || ['', '-', '0x'].includes(text)) return `.${text}`;
  const [, sign = '', digits = ''] = /^(-|0x)?(.*)$/s.exec(text) ?? [];
  const key = `${sign}0${digits.replace(/^0+/, '')}`;
  return sign === '' && text.includes('.') ? key.replace(/(?<!0)0+$/, '') : key;
}

/** Returns a key that is equal for equal candidates. */
export function setCandidateKey({ exact, ignoringCase, numbers }: SetCandidate): string {
  return JSON.stringify([exact, ignoringCase, numbers]);
}

export function isItem(item: string, { exact, ignoringCase, numbers }: SetCandidate): boolean {
  const lower = item.toLowerCase();
  return exact.includes(item) || ignoringCase.includes(lower) || numbers.includes(numberKey(lower));
}
