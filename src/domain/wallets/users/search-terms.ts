import type { LinkedAccountRecord } from './linked-account-kinds.ts';

// An e-mail address has no more. CHOICE: what is longer is found by its own look-up only.
const MAX_TERM_BYTES = 254;

/** The members of an account that hold a name or address beside the one that makes it unique. */
const namedMembers = ['email', 'name', 'display_name'] as const;

/** The texts by which the search finds an account, as the index holds them. */
export function searchTermsOf({ subject, username, details }: LinkedAccountRecord): Uint8Array[] {
  const texts = [subject, username, ...namedMembers.map((name) => details[name])];
  const terms = texts.flatMap((text) => (typeof text === 'string' ? (toSearchTerm(text) ?? []) : []));
  return [...new Map(terms.map((term) => [term.toString('hex'), term])).values()];
}

/** A text in the form in which the index holds it; undefined when it is too long to be there, or empty. */
export function toSearchTerm(text: string): Buffer | undefined {
  const term = Buffer.from(isPhoneNumber(text) ? text.replace(/[^+0-9]/g, '') : text.toLowerCase());
  return term.length > 0 && term.length <= MAX_TERM_BYTES ? term : undefined;
}

// Phone numbers are compared without their blanks and dashes.
function isPhoneNumber(text: string): boolean {
  return /^\+[0-9 ().-]+$/.test(text);
}
