/** Codes for violations of a unique index: SQLSTATE of PostgreSQL, and extended result codes of SQLite. */
const uniqueViolations: readonly string[] = [
  '23505',
  'SQLITE_CONSTRAINT_UNIQUE',
  'SQLITE_CONSTRAINT_PRIMARYKEY',
];

/**
 * Codes of collisions with other transactions: violations of a unique index, serialization failures and deadlocks
 * (PostgreSQL, Appendix A), and SQLite's busy errors.
 */
const collisions: readonly string[] = [
  ...uniqueViolations,
  '40001',
  '40P01',
  'SQLITE_BUSY',
  'SQLITE_BUSY_SNAPSHOT',
];

/** Returns whether a statement failed because the value already exists in a unique index. */
export function isUniqueViolation(error: unknown): boolean {
  return hasCode(error, uniqueViolations);
}

/** Returns whether a statement failed because of a concurrent transaction. The whole transaction can then run again. */
export function isDatabaseCollision(error: unknown): boolean {
  return hasCode(error, collisions);
}

type FailureKind = 'unavailable' | 'timeout' | 'conflict' | 'constraint' | 'other';

/** Returns the kind of a failed statement, by PostgreSQL's SQLSTATE (Appendix A) or SQLite's result code. */
export function kindOfFailure(error: unknown): FailureKind {
  const { code = '', isUnavailable } = error as { code?: unknown; isUnavailable?: boolean };
  const name = String(code);
  // A statement timeout, a lock timeout, and a transaction that was idle for too long.
  if (/^(57014|55P03|25P03)$/.test(name)) return 'timeout';
  if (/^(40001|40P01|SQLITE_BUSY\w*)$/.test(name)) return 'conflict';
  if (/^(23\w{3}|SQLITE_CONSTRAINT\w*)$/.test(name)) return 'constraint';
  return isUnavailable === true ? 'unavailable' : 'other';
}

function hasCode(error: unknown, codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}

/** Returns whether a statement waited too long for a lock. */
export function isLockTimeout(error: unknown): boolean {
  return hasCode(error, ['55P03']);
}

/**
 * The error codes of a database that is temporarily unavailable: unreachable, full, read-only, with the needed rows
 * locked, or without its tables while a dump is loaded.
 *
 * PostgreSQL (Appendix A): classes 08 (connection), 53 (resources) and 57P (shutdown), and 25006 (read-only), 25P03
 * (idle in transaction), 55P03 (lock), 57014 (statement timeout), 3F000 (schema), 42P01 (table) and 42P10 (unique
 * index). SQLite: result codes. Sockets and files: system error codes.
 */
const unavailableCodes =
  /^(08\w{3}|53\w{3}|57P\d\d|25006|25P03|55P03|57014|3F000|42P01|42P10|E(CONNREFUSED|CONNRESET|PIPE|TIMEDOUT|NOTFOUND|AI_AGAIN|HOSTUNREACH|NETUNREACH|NOSPC|DQUOT|ROFS|IO|MFILE)|SQLITE_(FULL|IOERR\w*|READONLY\w*|CANTOPEN\w*|BUSY\w*|CORRUPT|NOTADB))$/;

// The messages of errors without a code. `pg` throws those up to `Cannot use a pool`. Our driver throws `the connection
// was lost` for a statement after the connection of its transaction broke. A coordinator of Citus sends the others, as
// internal errors, when the node that has the rows is lost or refuses. The last two name a table that was dropped.
const unavailableMessages =
  /^(timeout exceeded when trying to connect|Query read timeout|Connection terminated|Client has encountered a connection error|Client was closed|Cannot use a pool after calling end|the connection was lost|SSL SYSCALL error|SSL connection has been closed|server closed the connection unexpectedly|could not receive data from server|could not send data to server|could not commit transaction for shard|failed to complete COPY on|could not extend file|canceling statement due to|terminating connection due to|the database system is |could not open relation with OID|cache lookup failed for relation)/;

/**
 * Returns what keeps an operator from using a database: an unknown host or database, a wrong password, a missing right,
 * silence. Returns undefined for other errors.
 */
export function accessFault(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code = '', message, unavailable } = at as NodeJS.ErrnoException & { unavailable?: string };
    // The signer or another service is unavailable.
    if (unavailable !== undefined) return undefined;
    // `pg` throws an error without a message if a host has several addresses and refuses at all of them.
    const text = message || code;
    // A missing table, a wrong password or role, no such database, and a missing right.
    if (/^(42P01|28\w{3}|3D000|3F000|42501)$/.test(code)) return `cannot be used: ${text}`;
    if (unavailableCodes.test(code) || unavailableMessages.test(message)) return `cannot be reached: ${text}`;
  }
  return undefined;
}

interface MarkedError {
  isUnavailable?: true;
}

/**
 * Marks an error as unavailability of the database, if it is one. `isUnavailable` of `errors.ts` recognizes the mark,
 * even when another error wraps it.
 */
export function markUnavailable(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const code = String((error as NodeJS.ErrnoException).code);
  if (unavailableCodes.test(code) || unavailableMessages.test(error.message)) {
    (error as MarkedError).isUnavailable = true;
  }
  return error;
}

/**
 * Returns whether the connection is unusable after this error: the error is not the server's response to a statement,
 * or the server ended the session with it.
 */
export function isConnectionLost(error: unknown): boolean {
  const { severity, code } = error as { severity?: string; code?: string };
  return (
    severity === undefined || severity === 'FATAL' || severity === 'PANIC' || /^57P\d\d$/.test(code ?? '')
  );
}

/** Returns whether the server did not respond in time. It may still be running the statement. */
export function isSilence(error: Error): boolean {
  return error.message === 'Query read timeout';
}

/**
 * Returns whether the connection broke before its statement could run, as idle connections do after a restart of the
 * server.
 */
export function isBrokenAtOnce(error: unknown): boolean {
  return isConnectionLost(error) && !/timeout/.test((error as Error).message);
}

/**
 * Returns whether the session has ended with this error, for a reason other than a time limit, or the server has lost
 * its session with the node that has the rows. Another server may respond to the next attempt.
 */
export function isSessionLost(error: unknown): boolean {
  const { code } = error as { code?: string };
  return isUnavailableError(error) && (isBrokenAtOnce(error) || /^(?:08\w{3}|XX000)$/.test(code ?? ''));
}

/**
 * Returns whether the database lacks its schema, a table or a unique index. All exist while a server runs, so the schema
 * was dropped, and may be loaded from a dump next. A dump is loaded table by table, and its unique indexes come last.
 */
export function isSchemaLost(error: unknown): boolean {
  return hasCode(error, ['3F000', '42P01', '42P10']);
}

function isUnavailableError(error: unknown): boolean {
  return (error as MarkedError).isUnavailable === true;
}
