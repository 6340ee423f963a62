/**
 * Errors of a database that is temporarily unavailable: unreachable, full, read-only, or with the needed rows locked.
 * Classes 08 (connection), 53 (resources), 57P (shut down), and 25006 (read-only), 55P03 (lock), 57014 (statement
 * timeout) of PostgreSQL, Appendix A; SQLite's result codes; system error codes of sockets and files.
 */
const unavailableCodes =
  /^(08\w{3}|53\w{3}|57P\d\d|25006|25P03|55P03|57014|E(CONNREFUSED|CONNRESET|PIPE|TIMEDOUT|NOTFOUND|AI_AGAIN|HOSTUNREACH|NETUNREACH|NOSPC|DQUOT|ROFS|IO|MFILE)|SQLITE_(FULL|IOERR\w*|READONLY\w*|CANTOPEN\w*|BUSY\w*|CORRUPT|NOTADB))$/;

// `pg` reports these without a code, and the last one is ours: a statement after the connection of its transaction broke.
const unavailableMessages =
  /^(timeout exceeded when trying to connect|Query read timeout|Connection terminated|Client has encountered a connection error|Client was closed|Cannot use a pool after calling end|the connection was lost)/;

interface MarkedError {
  isUnavailable?: true;
}

/**
 * Marks an error as unavailability of the database, so that `isUnavailable` of `errors.ts` recognizes it, even
 * wrapped.
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
 * Whether the connection is unusable after this error: it is not an error response of the server to a statement, or
 * the server ended the session with it.
 */
export function isConnectionLost(error: unknown): boolean {
  const { severity, code } = error as { severity?: string; code?: string };
  return (
    severity === undefined || severity === 'FATAL' || severity === 'PANIC' || /^57P\d\d$/.test(code ?? '')
  );
}

/** Whether the server gave no answer in time, so that it may still be at work. */
export function isSilence(error: Error): boolean {
  return error.message === 'Query read timeout';
}

/**
 * Whether the connection was broken before its statement could run, as idle ones are after a restart of the server.
 */
export function isBrokenAtOnce(error: unknown): boolean {
  return isConnectionLost(error) && !/timeout/.test((error as Error).message);
}

/** Whether the session has ended with this error, other than by a limit of time, so that another server may answer next. */
export function isSessionLost(error: unknown): boolean {
  return isUnavailableError(error) && isBrokenAtOnce(error);
}

function isUnavailableError(error: unknown): boolean {
  return (error as MarkedError).isUnavailable === true;
}
