import { type PoolClient, types } from 'pg';

// HOT: statements of a unit of work are sent together where no response is needed between them. A round trip costs 50
// µs of CPU here and on the server, and `pg` makes one for each statement (bench `postgres`).

/** A statement that PostgreSQL prepares once per connection, under its name. */
export interface NamedStatement {
  readonly name: string;
  readonly sql: string;
  readonly parameters: readonly unknown[];
}

export interface StatementResult {
  readonly rows: unknown[];
  /** The command tag of PostgreSQL, such as `INSERT 0 1`. */
  readonly tag: string;
}

/**
 * The results of the statements that succeeded, in order, and the error of the statement after them, if one failed.
 * PostgreSQL skips all statements after an error.
 */
export interface PipelinedResult {
  readonly results: readonly StatementResult[];
  readonly error?: unknown;
}

/** When PostgreSQL has last responded on any of the connections that share this object, by `performance.now()`. */
export interface Responses {
  lastMs: number;
}

/** How long a message may wait for its responses. */
export interface SilenceLimits {
  /** For all responses together, not for the silence between two of them. Undefined: unlimited. */
  readonly silenceMs: number | undefined;
  /** If both are set, a message also ends when none of the connections that share `responses` got one for `quietMs`. */
  readonly responses?: Responses;
  readonly quietMs?: number;
}

/** Creates the error for a message that got no response in time. The connection can then no longer be used. */
export function silence(): Error {
  return new Error('Query read timeout');
}

/**
 * Calls `end` when a message that is sent now has waited for too long.
 *
 * @returns a function that ends the watch.
 */
export function watchSilence({ silenceMs, responses, quietMs }: SilenceLimits, end: () => void): () => void {
  if (silenceMs === undefined) return () => undefined;
  const sentMs = performance.now();
  const leftMs = (): number => {
    const nowMs = performance.now();
    const left = sentMs + silenceMs - nowMs;
    if (responses === undefined || quietMs === undefined) return left;
    return Math.min(left, Math.max(sentMs, responses.lastMs) + quietMs - nowMs);
  };
  let isOver = false;
  const check = (): void => {
    if (isOver) return;
    const left = leftMs();
    if (left <= 0) end();
    else timer = setTimeout(checkLater, left);
  };
  // After a pause of this process, responses may have arrived that it has not read yet.
  const checkLater = (): void => void setImmediate(check);
  let timer = setTimeout(checkLater, leftMs());
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

/** The type `bigint`. Its values are read as numbers, because our times and sequences stay far below 2^53. */
const INT8_OID = 20;

/** Returns the parser for the text form of a type's values. */
export const getTypeParser: typeof types.getTypeParser = (oid: number, format?: 'text' | 'binary') =>
  oid === INT8_OID && format !== 'binary' ? Number : types.getTypeParser(oid, format as 'text');

/**
 * Sends the statements in one message, and resolves when all of them have ended. Never rejects.
 */
export function sendPipelined(
  client: PoolClient,
  statements: readonly NamedStatement[],
  limits: SilenceLimits,
): Promise<PipelinedResult> {
  return new Promise((resolve) => {
    client.query(createPipelined(statements, resolve, limits));
  });
}

/** The methods that `pg` calls on its connection. The declared types of `pg` are those of an earlier version. */
interface WireConnection {
  readonly stream: { cork(): void; uncork(): void };
  /** The texts of prepared statements, by name. `pg` adds a text when PostgreSQL has accepted it. */
  readonly parsedStatements: Readonly<Record<string, string>>;
  parse(statement: { name: string; text: string }): void;
  describe(what: { type: 'S'; name: string }): void;
  bind(values: {
    statement: string;
    values: readonly unknown[];
    valueMapper: (value: unknown) => unknown;
  }): void;
  execute(): void;
  sync(): void;
  sendCopyFail(message: string): void;
}

/** How to read the rows of a statement. */
interface Shape {
  readonly names: readonly string[];
  readonly parsers: readonly ((text: string) => unknown)[];
  readonly empty: Readonly<Record<string, null>>;
}

/** The row descriptions of prepared statements, by connection and name. They never change. */
const shapesOf = new WeakMap<WireConnection, Map<string, Shape>>();

const NOTHING: Shape = { names: [], parsers: [], empty: {} };

/**
 * Returns a query object that a client of `pg` runs, with the methods that the client calls for each message of the
 * server.
 */
function createPipelined(
  statements: readonly NamedStatement[],
  resolve: (result: PipelinedResult) => void,
  limits: SilenceLimits,
) {
  const results: StatementResult[] = [];
  let rows: unknown[] = [];
  let shapes: Map<string, Shape>;
  let shape: Shape | undefined;
  let fault: { readonly error: unknown } | undefined;
  // HOT: a timer of our own, because `pg` assigns the function of its timer to the query object. V8 keeps such a
  // function, and with it the query object and its rows, until a full garbage collection.
  const stopWatch = watchSilence(limits, () => batch.callback(silence()));

  const batch = {
    // The statement whose messages are arriving. `pg` reads these two members to record which statements are prepared.
    name: statements[0]!.name,
    text: statements[0]!.sql,
    callback(error?: unknown) {
      stopWatch();
      const failed = error === undefined || error === null ? fault : { error };
      resolve(failed === undefined ? { results } : { results, error: failed.error });
    },
    submit(connection: WireConnection): Error | null {
      shapes = shapesOf.get(connection) ?? new Map<string, Shape>();
      shapesOf.set(connection, shapes);
      connection.stream.cork();
      try {
        writeAll(connection, statements, shapes);
      } finally {
        connection.stream.uncork();
      }
      return null;
    },
    handleRowDescription({ fields }: { fields: readonly FieldDescription[] }) {
      shape = shapeOf(fields);
      shapes.set(batch.name, shape);
    },
    handleDataRow({ fields }: { fields: readonly (string | null)[] }) {
      try {
        rows.push(readRow(fields, shape ?? shapes.get(batch.name)!));
      } catch (error) {
        fault ??= { error };
      }
    },
    handleCommandComplete({ text }: { text: string }) {
      if (!shapes.has(batch.name)) shapes.set(batch.name, NOTHING);
      results.push({ rows, tag: text });
      const next = statements[results.length];
      if (next === undefined) return;
      batch.name = next.name;
      batch.text = next.sql;
      rows = [];
      shape = undefined;
    },
    handleError: (error: unknown) => batch.callback(error),
    handleReadyForQuery: () => batch.callback(),
    handleEmptyQuery: () => batch.handleCommandComplete({ text: '' }),
    handlePortalSuspended: () => undefined,
    handleCopyInResponse: (connection: WireConnection) => connection.sendCopyFail('nothing to copy'),
    handleCopyData: () => undefined,
  };
  return batch;
}

function writeAll(
  connection: WireConnection,
  statements: readonly NamedStatement[],
  shapes: ReadonlyMap<string, Shape>,
): void {
  const sent = new Set<string>();
  for (const { name, sql, parameters } of statements) {
    if (connection.parsedStatements[name] === undefined && !sent.has(name)) {
      connection.parse({ name, text: sql });
    }
    if (!shapes.has(name) && !sent.has(name)) connection.describe({ type: 'S', name });
    sent.add(name);
    connection.bind({ statement: name, values: parameters, valueMapper: wireValue });
    connection.execute();
  }
  connection.sync();
}

interface FieldDescription {
  readonly name: string;
  readonly dataTypeID: number;
}

function shapeOf(fields: readonly FieldDescription[]): Shape {
  return {
    names: fields.map(({ name }) => name),
    parsers: fields.map(({ dataTypeID }) => getTypeParser(dataTypeID)),
    empty: Object.fromEntries(fields.map(({ name }) => [name, null])),
  };
}

function readRow(fields: readonly (string | null)[], { names, parsers, empty }: Shape): object {
  const row: Record<string, unknown> = { ...empty };
  for (let at = 0; at < fields.length; at += 1) {
    const text = fields[at] as string | null;
    if (text !== null) row[names[at] as string] = (parsers[at] as (text: string) => unknown)(text);
  }
  return row;
}

/** Returns whether `wireValue` can encode the value. It cannot encode lists and dates; `pg` can. */
export function isWireValue(value: unknown): boolean {
  return typeof value !== 'object' || value === null || value instanceof Uint8Array;
}

function wireValue(value: unknown): string | Buffer | null {
  if (typeof value === 'string') return value;
  if (value === null || value === undefined) return null;
  if (Buffer.isBuffer(value)) return value;
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return String(value);
}
