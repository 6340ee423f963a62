/**
 * Errors that say the database cannot do its work now: it is away, full, read-only, or someone else holds what is
 * needed. Classes 08 (connection), 53 (resources), 57P (shut down), and 25006 (read-only), 55P03 (lock), 57014
 * (statement timeout) of PostgreSQL, Appendix A; SQLite's result codes; the system's of sockets and files.
 */
const unavailableCodes =
  /^(08\w{3}|53\w{3}|57P\d\d|25006|25P03|55P03|57014|E(CONNREFUSED|CONNRESET|PIPE|TIMEDOUT|NOTFOUND|AI_AGAIN|HOSTUNREACH|NETUNREACH|NOSPC|ROFS|MFILE)|SQLITE_(FULL|IOERR\w*|READONLY\w*|CANTOPEN\w*|BUSY\w*|CORRUPT|NOTADB))$/;

// `pg` has no codes for these.
const unavailableMessages =
  /^(timeout exceeded when trying to connect|Query read timeout|Connection terminated|Client has encountered a connection error|Client was closed|Cannot use a pool after calling end)/;

interface MarkedError {
  isUnavailable?: true;
}

/** Marks an error of the database being unavailable, so that `isUnavailable` of `errors.ts` knows it, wrapped or not. */
export function markUnavailable(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const code = String((error as NodeJS.ErrnoException).code);
  if (unavailableCodes.test(code) || unavailableMessages.test(error.message)) {
    (error as MarkedError).isUnavailable = true;
  }
  return error;
}

/**
 * Whether a connection cannot be used again after this error: it did not come from the server as an error of a
 * statement, or with it the server ended the session.
 */
export function isConnectionLost(error: unknown): boolean {
  const { severity, code } = error as { severity?: string; code?: string };
  return (
    severity === undefined || severity === 'FATAL' || severity === 'PANIC' || /^57P\d\d$/.test(code ?? '')
  );
}

/** Whether a connection broke before its statement could have run, as one does that was idle while the server restarted. */
export function isBrokenAtOnce(error: unknown): boolean {
  return isConnectionLost(error) && !/timeout/.test((error as Error).message);
}
