import canonicalize from 'canonicalize';

/** The value has no canonical JSON form: a lone surrogate, a number that is not finite, or nothing at all. */
export class NotCanonicalizableError extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = 'NotCanonicalizableError';
  }
}

/**
 * The one JSON text that stands for `value`: members sorted by UTF-16 code units, numbers as ECMAScript prints
 * them, no white space. Members whose value is undefined are left out, as `JSON.stringify` leaves them out.
 *
 * Throws `NotCanonicalizableError`. Source: RFC 8785.
 */
export function canonicalJson(value: unknown): string {
  let text: string | undefined;
  try {
    text = canonicalize(value);
  } catch (error) {
    throw new NotCanonicalizableError(error instanceof Error ? error.message : 'not a JSON value');
  }
  if (text === undefined) throw new NotCanonicalizableError('not a JSON value');
  return text;
}
