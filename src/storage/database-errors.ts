/** Codes for violations of a unique index: SQLSTATE of PostgreSQL, and extended result codes of SQLite. */
const uniqueViolations: readonly string[] = [
  '23505',
  'SQLITE_CONSTRAINT_UNIQUE',
  'SQLITE_CONSTRAINT_PRIMARYKEY',
];

/** Serialization failures and deadlocks (PostgreSQL, Appendix A), and SQLite's busy errors. */
const collisions: readonly string[] = [
  ...uniqueViolations,
  '40001',
  '40P01',
  'SQLITE_BUSY',
  'SQLITE_BUSY_SNAPSHOT',
];

/** Whether a statement failed because the value already exists in a unique index. */
export function isUniqueViolation(error: unknown): boolean {
  return hasCode(error, uniqueViolations);
}

/** Whether a statement failed because of a concurrent transaction. Its whole transaction can then run again. */
export function isDatabaseCollision(error: unknown): boolean {
  return hasCode(error, collisions);
}

/** The kind of a failure, for metrics. */
export type FailureKind = 'unavailable' | 'timeout' | 'conflict' | 'constraint' | 'other';

/** The kind of a failed statement, by PostgreSQL's SQLSTATE (Appendix A) or SQLite's result code. */
export function kindOfFailure(error: unknown): FailureKind {
  const { code = '', isUnavailable } = error as { code?: unknown; isUnavailable?: boolean };
  const name = String(code);
  // Statement timeout, lock timeout, and a transaction that was idle for too long.
  if (/^(57014|55P03|25P03)$/.test(name)) return 'timeout';
  if (/^(40001|40P01|SQLITE_BUSY\w*)$/.test(name)) return 'conflict';
  if (/^(23\w{3}|SQLITE_CONSTRAINT\w*)$/.test(name)) return 'constraint';
  return isUnavailable === true ? 'unavailable' : 'other';
}

function hasCode(error: unknown, codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}

/** Whether a statement waited too long for a lock. */
export function isLockTimeout(error: unknown): boolean {
  return hasCode(error, ['55P03']);
}
