import type { LinkedAccountRecord } from './linked-account-kinds.ts';

// The longest e-mail address. CHOICE: longer texts are found only by their own look-up, not by search.
const MAX_TERM_BYTES = 254;

/** The account members with a name or address, besides the unique subject. */
const namedMembers = ['email', 'name', 'display_name'] as const;

/** The search terms of an account, in index form. */
export function searchTermsOf({ subject, username, details }: LinkedAccountRecord): Uint8Array[] {
  const texts = [subject, username, ...namedMembers.map((name) => details[name])];
  const terms = texts.flatMap((text) => (typeof text === 'string' ? (toSearchTerm(text) ?? []) : []));
  return [...new Map(terms.map((term) => [term.toString('hex'), term])).values()];
}

/** A text in index form; undefined when it is empty or too long. */
export function toSearchTerm(text: string): Buffer | undefined {
  const term = Buffer.from(isPhoneNumber(text) ? text.replace(/[^+0-9]/g, '') : text.toLowerCase());
  return term.length > 0 && term.length <= MAX_TERM_BYTES ? term : undefined;
}

// Phone numbers are compared without spaces and dashes.
function isPhoneNumber(text: string): boolean {
  return /^\+[0-9 ().-]+$/.test(text);
}
