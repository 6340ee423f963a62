/** PostgreSQL's SQLSTATE and SQLite's extended result codes for a row that would break a unique index. */
const uniqueViolations: readonly string[] = [
  '23505',
  'SQLITE_CONSTRAINT_UNIQUE',
  'SQLITE_CONSTRAINT_PRIMARYKEY',
];

/** With a serialization failure, a deadlock (PostgreSQL, Appendix A) and SQLite's waits that took too long. */
const collisions: readonly string[] = [
  ...uniqueViolations,
  '40001',
  '40P01',
  'SQLITE_BUSY',
  'SQLITE_BUSY_SNAPSHOT',
];

/** Whether a statement failed because a unique index already holds the value. */
export function isUniqueViolation(error: unknown): boolean {
  return hasCode(error, uniqueViolations);
}

/** Whether a statement failed because another transaction got in the way; its whole transaction can be run again. */
export function isDatabaseCollision(error: unknown): boolean {
  return hasCode(error, collisions);
}

function hasCode(error: unknown, codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}
