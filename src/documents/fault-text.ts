import type { ValidationError } from '../generated/validate-function.ts';
import { describeFault } from '../http/validation-issues.ts';

// They follow the errors of what they contain.
const containers = new Set(['discriminator', 'if']);

/** The first fault of a value, after its pointer: `/0/pages: is required`. */
export function faultText(errors: readonly ValidationError[] | null | undefined): string {
  const specific = (errors ?? []).filter(({ keyword }) => !containers.has(keyword));
  const { pointer, message } = describeFault(specific);
  return pointer === '' ? message : `${pointer}: ${message}`;
}
