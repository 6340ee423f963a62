import type { IntentAuthorizationMember, LinkedAccount, User } from '../../generated/schemas.ts';
import type {
  PolicyUnitTrace,
  SandboxCoverageFigure,
  SandboxCoverageOperation,
  SandboxScenarioResource,
  SandboxSnapshot,
  SandboxUpcomingEntry,
} from '../../sandbox/generated/schemas.ts';
import { hrefOf } from './routes.ts';

/** Shortens an address to its first and last digits. */
export function shortAddress(address: string): string {
  return address.length <= 12 ? address : `${address.slice(0, 6)}…${address.slice(-4)}`;
}

/** Formats Unix milliseconds as the time of day in UTC, such as `00:00:02.500`. */
export function timeOfDay(ms: number): string {
  return new Date(ms).toISOString().slice(11, 23);
}

/** Formats Unix milliseconds as date and time in UTC, such as `2026-01-01 00:00:02.500`. */
export function dateAndTime(ms: number): string {
  return new Date(ms).toISOString().slice(0, 23).replace('T', ' ');
}

/**
 * Formats a duration in milliseconds, such as `4.2 ms`, `3 s`, `5 min`, `2 h` or `3 d`. Uses the largest unit of which
 * the duration has at least two.
 */
export function durationText(ms: number): string {
  const units: readonly [string, number][] = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1000],
  ];
  const [unit, size] = units.find(([, size]) => Math.abs(ms) >= 2 * size) ?? ['ms', 1];
  const value = ms / size;
  return `${Math.abs(value) >= 10 ? Math.round(value) : Math.round(value * 10) / 10} ${unit}`;
}

/** Formats an upcoming event and its time, such as `intent expires in 3 d, 2026-01-04 00:00:00.000 UTC`. */
export function markText({ kind, at_ms: atMs }: SandboxUpcomingEntry, nowMs: number): string {
  return `${kind.replaceAll('_', ' ')} in ${durationText(atMs - nowMs)}, ${dateAndTime(atMs)} UTC`;
}

/** Formats a share, such as `12 of 169, 7.1 %`. It is rounded down, so that 100 % means everything. */
export function shareText({ covered, total }: Pick<SandboxCoverageFigure, 'covered' | 'total'>): string {
  const percent = total === 0 ? 100 : Math.floor((covered / total) * 1000) / 10;
  return `${covered} of ${total}, ${percent} %`;
}

/**
 * Returns the operations that were called, those that were not called, or all of them. Operations with the most
 * requests come first.
 */
export function shownOperations(
  operations: readonly SandboxCoverageOperation[],
  { text, which }: { readonly text: string; readonly which: string },
): SandboxCoverageOperation[] {
  const wanted = text.trim().toLowerCase();
  return operations
    .filter(({ operation }) => operation.toLowerCase().includes(wanted))
    .filter(({ requests }) => which === 'all' || (which === 'called') === requests > 0)
    .sort((a, b) => b.requests - a.requests || a.operation.localeCompare(b.operation));
}

/** Describes a member of a key quorum, by the name of its key if it is known, and whether it has signed. */
export function memberText(
  member: IntentAuthorizationMember,
  keyNames: ReadonlyMap<string, string> = new Map(),
): string {
  if (member.type === 'key_quorum') {
    const name = `key quorum ${member.display_name ?? member.key_quorum_id}`;
    return `${name}: ${member.threshold_met ? 'has signed' : 'has not signed'}`;
  }
  const name =
    member.type === 'key'
      ? (keyNames.get(member.public_key) ?? `key …${member.public_key.slice(-12)}`)
      : `user ${member.user_id}`;
  const { signed_at: signedAt } = member;
  return `${name}: ${signedAt === null ? 'has not signed' : `signed at ${dateAndTime(signedAt)} UTC`}`;
}

/** The members that identify an account, best first. */
const identifying = [
  'address',
  'number',
  'phoneNumber',
  'email',
  'username',
  'custom_user_id',
  'telegram_user_id',
  'fid',
  'subject',
  'credential_id',
  'public_key',
] as const;

/** Formats a linked account, such as `email alice@example.com` or `wallet 0x3b… on ethereum`. */
export function accountText(account: LinkedAccount): string {
  const values = account as Readonly<Record<string, unknown>>;
  const name = identifying.find((each) => values[each] !== undefined && values[each] !== null);
  return [
    account.type.replaceAll('_', ' '),
    ...(name === undefined ? [] : [String(values[name])]),
    ...(typeof values.chain_type === 'string' ? [`on ${values.chain_type}`] : []),
  ].join(' ');
}

/** Describes a user by an account that is not a wallet, else by a wallet account, else by the id. */
export function userText({ id, linked_accounts: accounts }: Pick<User, 'id' | 'linked_accounts'>): string {
  const shown = accounts.find(({ type }) => type !== 'wallet' && type !== 'smart_wallet') ?? accounts[0];
  return shown === undefined ? id : accountText(shown);
}

/** Formats a number of bytes, such as `512 B` or `4.5 MB`. */
export function sizeText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB'];
  const power = bytes < 1000 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), units.length - 1);
  return `${Math.round((bytes / 1000 ** power) * 10) / 10} ${units[power]}`;
}

/** Describes when and by which version a snapshot was saved. */
export function savedText({ saved_at_ms: savedMs, version }: SandboxSnapshot): string {
  if (savedMs === null) return 'this file is not a snapshot, or is torn';
  return `${dateAndTime(savedMs)} UTC${version === null ? '' : `, version ${version}`}`;
}

/** Derives the name of a snapshot from a file name: `Funded (1).snapshot` becomes `funded-1`. */
export function nameOfFile(file: string): string {
  const name = file
    .replace(/\.snapshot$/i, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .replace(/(?<!-)-+$/, '')
    .slice(0, 64);
  return name === '' ? 'uploaded' : name;
}

/** Returns the address of the page that shows a resource, or undefined if no page does. */
export function resourceHref({ type, id }: SandboxScenarioResource): string | undefined {
  switch (type) {
    case 'wallet':
      return hrefOf('wallets', [id]);
    case 'webhook_endpoint':
      return hrefOf('webhooks', [id]);
    case 'intent':
      return hrefOf('intents', [id]);
    case 'policy':
      return hrefOf('policies', [id]);
    case 'key_quorum':
      return hrefOf('quorums', [id]);
    default:
      return undefined;
  }
}

/** Formats the outcome of a unit, such as `denied by default`. */
export function outcomeText({ outcome }: Pick<PolicyUnitTrace, 'outcome'>): string {
  return String(outcome).replaceAll('_', ' ');
}

/** Returns the distinct lines of a string, without empty ones. Spaces in them are kept. */
export function linesIn(text: string): readonly string[] {
  return [...new Set(text.split('\n'))].filter((line) => line !== '');
}

/** The number of values that one request takes. */
const VALUES_PER_REQUEST = 100;

/** Returns the requests that give a condition set these values: the first replaces all values, the rest add to them. */
export function valueRequests(values: readonly string[]) {
  const count = Math.ceil(values.length / VALUES_PER_REQUEST);
  return Array.from({ length: count }, (_, index) => ({
    operation: index === 0 ? 'replaceConditionSetItems' : 'addConditionSetItems',
    body: values
      .slice(index * VALUES_PER_REQUEST, (index + 1) * VALUES_PER_REQUEST)
      .map((value) => ({ value })),
  }));
}

/**
 * Returns the change that turns the settings `before` into `after`: the settings that differ, and null for those that
 * `after` lacks.
 */
export function settingsChange(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const removed = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  const changed = Object.entries(after).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
  );
  return Object.fromEntries([...removed.map((name) => [name, null] as const), ...changed]);
}
