import type { CustomerSnapshot } from '../../../ports/fiat-providers.ts';
import type { StoredSnapshot } from './fiat-customer.entity.ts';

/** The part of a snapshot that is stored. */
export function storedSnapshot(snapshot: CustomerSnapshot): StoredSnapshot {
  return {
    status: snapshot.status,
    terms: snapshot.terms.status,
    verification: snapshot.verification.status,
    rejectionReasons: snapshot.verification.rejectionReasons ?? null,
    capabilities: snapshot.capabilities,
    endorsements: snapshot.endorsements,
    requirementsDue: snapshot.requirementsDue,
    futureRequirementsDue: snapshot.futureRequirementsDue,
  };
}

/** The old and the new value of each changed field, by the field's path in the event's `data`. */
export type SnapshotChanges = Readonly<Record<string, readonly [unknown, unknown]>>;

/**
 * The changes that an event contains; empty if events contain none of them.
 *
 * @param check `kyc` or `kyb`.
 */
export function changesBetween(
  before: StoredSnapshot,
  after: StoredSnapshot,
  check: 'kyc' | 'kyb',
): SnapshotChanges {
  const [old, now] = [fieldsOf(before, check), fieldsOf(after, check)];
  const paths = new Set([...old.keys(), ...now.keys()]);
  return Object.fromEntries(
    [...paths]
      .filter((path) => old.get(path) !== now.get(path))
      .map((path) => [path, [old.get(path) ?? null, now.get(path) ?? null] as const]),
  );
}

function fieldsOf(snapshot: StoredSnapshot, check: 'kyc' | 'kyb'): ReadonlyMap<string, string> {
  return new Map([
    ['status', snapshot.status],
    [`${check}.status`, snapshot.verification],
    ['tos.status', snapshot.terms],
    ...Object.entries(snapshot.capabilities).map(
      ([name, status]) => [`capabilities.${name}`, status] as const,
    ),
    ...snapshot.endorsements.map(({ name, status }) => [`endorsements.${name}`, status] as const),
  ]);
}
