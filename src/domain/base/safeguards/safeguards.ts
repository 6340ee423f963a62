import { strict as assert } from 'node:assert';
import { LRUCache } from 'lru-cache';
import { ApiError, invalidField, requestExpired } from '../../../errors.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import type { Safeguards } from '../../../ports/requests.ts';
import { prepareQuery } from '../../prepared-query.ts';

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

export function isSafeguard(name: string): name is keyof Safeguards {
  return Object.hasOwn(checks, name);
}

/**
 * Checks and returns the value of a safeguard that an operator sets.
 *
 * @throws ApiError invalid_data that names the setting.
 */
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

// HOT: runs for every request that an owner signs (bench `held-load`, 2-of-3 signature). The entity manager takes
// about ten times the CPU per row read.
const selectSettings = prepareQuery<{ appId: string }, { settings: string }>((database, { appId }) =>
  database.selectFrom('apps').select('settings').where('id', '=', appId),
);

/**
 * Returns the safeguards of the request's app: its settings, and the server's defaults for the rest. A transaction
 * reads them once, so that all its steps apply the same safeguards. No request changes the settings of its own app and
 * then reads them.
 */
export async function readSafeguards({
  app,
  em,
  notes,
  safeguards: defaults,
}: Pick<OperationContext, 'app' | 'em' | 'notes' | 'safeguards'>): Promise<Safeguards> {
  if (notes.settings?.appId === app.id) return withSettings(defaults, notes.settings.text);
  const {
    rows: [row],
  } = await selectSettings(em, { appId: app.id });
  assert(row !== undefined, `app ${app.id} has sent a request and does not exist`);
  if (em.isInTransaction()) notes.settings = { appId: app.id, text: row.settings };
  return withSettings(defaults, row.settings);
}

/** Caches the merged safeguards by the server's defaults and the text of the app's settings. */
const merged = new WeakMap<Safeguards, LRUCache<string, Safeguards>>();

function withSettings(defaults: Safeguards, stored: string): Safeguards {
  const ofDefaults = merged.get(defaults) ?? new LRUCache<string, Safeguards>({ max: 1000 });
  merged.set(defaults, ofDefaults);
  const known = ofDefaults.get(stored);
  if (known !== undefined) return known;
  const settings = JSON.parse(stored) as Record<string, unknown>;
  const set = Object.keys(defaults).filter((name) => settings[name] !== undefined);
  const safeguards = { ...defaults, ...Object.fromEntries(set.map((name) => [name, settings[name]])) };
  ofDefaults.set(stored, safeguards);
  return safeguards;
}

type ExpiryContext = Pick<OperationContext, 'app' | 'em' | 'notes' | 'nowMs' | 'proof' | 'safeguards'>;

/**
 * Refuses a signed request without an expiry, or with an expiry too far in the future, if the app's settings require a
 * short one. Without an expiry, its signatures could be sent again until the owner changes.
 *
 * @throws ApiError request_expired
 */
export async function requireShortExpiry(context: ExpiryContext): Promise<void> {
  const { require_request_expiry: maxSeconds } = await readSafeguards(context);
  if (maxSeconds === false) return;
  const expiryMs = requirePresent(context);
  if (expiryMs > context.nowMs + maxSeconds * 1000) {
    throw requestExpired(
      `expected a request expiry at most ${maxSeconds} seconds ahead, got \`${expiryMs}\`; the server's time is ${context.nowMs}`,
      context.nowMs,
    );
  }
}

/**
 * Refuses an intent without an expiry if the app's settings require one. The signatures that the intent collects would
 * also be valid for a direct request, and without an expiry they would never lapse.
 *
 * @throws ApiError request_expired
 */
export async function requireAnyExpiry(context: ExpiryContext): Promise<void> {
  const { require_request_expiry: maxSeconds } = await readSafeguards(context);
  if (maxSeconds !== false) requirePresent(context);
}

function requirePresent({ proof: { expiryMs } }: ExpiryContext): number {
  if (expiryMs !== undefined) return expiryMs;
  throw new ApiError('request_expired', 'expected the header `service-request-expiry`: this app requires it');
}

/** The behavior that the specification publishes. These are the sandbox's defaults. */
export const publishedSafeguards: Safeguards = {
  archive_requires_owner: false,
  identity_changes: 'app_secret',
  require_request_expiry: false,
  single_use_signatures: false,
  block_test_logins: false,
  block_linking_test_accounts: false,
  strict_methods: false,
  policy_parts_require_owner: false,
};

/** The defaults of a production server. */
export const strictSafeguards: Safeguards = {
  archive_requires_owner: true,
  identity_changes: 'user_key',
  // Published clients send an expiry 15 minutes ahead. The other five minutes allow for differences of their clocks.
  require_request_expiry: 20 * 60,
  single_use_signatures: true,
  block_test_logins: true,
  block_linking_test_accounts: true,
  // CHOICE: `strict_methods` is off by default. When it is on, an ALLOW rule for `*` does not cover hashes, and
  // published clients have no other way to allow them.
  strict_methods: false,
  policy_parts_require_owner: true,
};
