import canonicalize from 'canonicalize';

/**
 * The value has no canonical JSON form, because it contains a lone surrogate or a non-finite number, or is undefined.
 */
export class NotCanonicalizableError extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = 'NotCanonicalizableError';
  }
}

/**
 * The canonical JSON text of `value`: members sorted by UTF-16 code units, numbers in ECMAScript notation, no white
 * space. Members whose value is undefined are omitted, as by `JSON.stringify`. Source: RFC 8785.
 *
 * @throws NotCanonicalizableError
 */
export function canonicalJson(value: unknown): string {
  let text: string | undefined;
  try {
    text = canonicalize(value);
  } catch (error) {
    throw new NotCanonicalizableError(error instanceof Error ? error.message : 'expected a JSON value');
  }
  if (text === undefined) throw new NotCanonicalizableError('expected a JSON value');
  return text;
}
