import { invalidField } from '../../../errors.ts';
import type { Safeguards } from '../../../ports/safeguards.ts';

const checks: { readonly [Name in keyof Safeguards]: (value: unknown) => string | undefined } = {
  archive_requires_owner: expectBoolean,
  identity_changes: expectIdentityRule,
  require_request_expiry: expectMaxExpiry,
  single_use_signatures: expectBoolean,
  block_test_logins: expectBoolean,
  block_linking_test_accounts: expectBoolean,
  strict_methods: expectBoolean,
  policy_parts_require_owner: expectBoolean,
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

const MAX_WAIT_HOURS = 30 * 24;

function expectIdentityRule(value: unknown): string | undefined {
  if (value === 'app_secret' || value === 'user_key') return undefined;
  const fault = `expected \`app_secret\`, \`user_key\` or {"wait_hours": 1 to ${MAX_WAIT_HOURS}}`;
  if (typeof value !== 'object' || value === null || Object.keys(value).length !== 1) return fault;
  const { wait_hours: hours } = value as { wait_hours?: unknown };
  return Number.isInteger(hours) && 1 <= Number(hours) && Number(hours) <= MAX_WAIT_HOURS ? undefined : fault;
}

const MAX_EXPIRY_SECONDS = 72 * 60 * 60;

function expectMaxExpiry(value: unknown): string | undefined {
  if (value === false) return undefined;
  const isCount = Number.isInteger(value) && 1 <= Number(value) && Number(value) <= MAX_EXPIRY_SECONDS;
  return isCount ? undefined : `expected false or a number of seconds from 1 to ${MAX_EXPIRY_SECONDS}`;
}

function expectBoolean(value: unknown): string | undefined {
  return typeof value === 'boolean' ? undefined : 'expected true or false';
}
