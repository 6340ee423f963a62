import { invalidField } from '../../../errors.ts';
import type { Safeguards } from '../../../ports/safeguards.ts';

const checks: { readonly [Name in keyof Safeguards]: (value: unknown) => string | undefined } = {
  archive_requires_owner: expectBoolean,
};

/** Whether this is the name of a safeguard. */
export function isSafeguard(name: string): name is keyof Safeguards {
  return Object.hasOwn(checks, name);
}

/** @throws ApiError invalid_data that names the setting. */
export function checkSafeguard(name: keyof Safeguards, value: unknown): unknown {
  const fault = checks[name](value);
  if (fault !== undefined) throw invalidField(`/settings/${name}`, fault);
  return value;
}

function expectBoolean(value: unknown): string | undefined {
  return typeof value === 'boolean' ? undefined : 'expected true or false';
}
