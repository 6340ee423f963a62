import { CompiledQuery, type QueryResult, type TransactionSettings } from 'kysely';
import type { Pool, PoolClient } from 'pg';
import { isBrokenAtOnce, isConnectionLost, isSilence, markUnavailable } from '../database-errors.ts';
import { createMutex } from '../mutex.ts';
import { type StatementOptions, statementAfterLast, type UnitConnection } from '../own-kysely.ts';
import type { HungConnections } from '../postgres-dialect.ts';
import {
  isWireValue,
  type NamedStatement,
  type PipelinedResult,
  type Responses,
  type SilenceLimits,
  type StatementResult,
  sendPipelined,
  silence,
  watchSilence,
} from './pipelining.ts';

/**
 * The maximum number of named statements per process. It is needed because lists of different lengths make different
 * SQL texts.
 */
const MAX_NAMED = 500;

/** Returns the name for the text of a statement; undefined if the statement is not named. */
type NameOf = (sql: string) => string | undefined;

/** The state that the connections of a pool share. */
export interface ConnectionTools {
  readonly nameOf: NameOf;
  /** Called for every statement that fails. */
  readonly onFailure: ((error: unknown) => void) | undefined;
  /** Statements that are sent after `begin` in each transaction. */
  readonly settings: string;
  /** The time limit for the responses to one message. After that, the connection is abandoned. Default: unlimited. */
  readonly silenceMs: number | undefined;
  /** Records when PostgreSQL responds. Undefined if this is not needed. */
  readonly responses: Responses | undefined;
  /**
   * The time limit for a message that commits nothing, while PostgreSQL responds to no connection of `responses`.
   * Default: only `silenceMs`.
   */
  readonly quietMs: number | undefined;
  readonly hung: HungConnections;
}

export function rememberNames(): NameOf {
  const names = new Map<string, string>();
  return (sql) => {
    const known = names.get(sql);
    if (known !== undefined || names.size >= MAX_NAMED) return known;
    const name = `custos_${names.size}`;
    names.set(sql, name);
    return name;
  };
}

/**
 * Returns whether a statement only reads: it takes no lock, and calls no function whose effect ends with a transaction.
 */
function isPlainRead(sql: string): boolean {
  return sql.startsWith('select ') && !moreThanRead.test(sql);
}

function isRead([query, ...others]: readonly Statement[]): boolean {
  return query !== undefined && others.length === 0 && isPlainRead(query.sql);
}

// Values are parameters, so these words come from our code. A match inside a longer name only begins a transaction that
// is not needed.
const moreThanRead = /\bfor (no key )?(update|share|key share)\b|\bpg_|\b(nextval|setval|set_config)\b/;

/** A statement that may be sent together with others. */
interface Statement extends CompiledQuery {
  readonly isPrepared: boolean;
}

/** Returns `begin`, `commit` or a similar command as a prepared statement. */
function command(sql: string): Statement {
  return { ...CompiledQuery.raw(sql), isPrepared: true };
}
const commit = command('commit');

/** The maximum number of deferred statements in one message. */
const MAX_DEFERRED = 20;

/**
 * Creates a connection for one unit of work. It acquires a connection of the pool with the first statement. In a
 * transaction, it keeps that connection from the first statement that is more than a plain read. `begin`, deferred
 * statements and `commit` are sent together with other statements.
 */
export function createUnitConnection(
  pool: Pool,
  { nameOf, onFailure, settings, silenceMs, responses, quietMs, hung }: ConnectionTools,
): UnitConnection {
  let client: PoolClient | undefined;
  // `announced`: the unit of work has begun a transaction, but PostgreSQL begins it only with the first statement that
  // is more than a plain read.
  let transaction: 'none' | 'announced' | 'open' | 'ended' = 'none';
  let begin = command(`begin${settings}`);
  // Isolation levels and access modes affect reads too.
  let hasModes = false;
  let deferred: Statement[] = [];
  // Statements of one unit of work may be run concurrently.
  const mutex = createMutex();
  const whole = { silenceMs };
  const limitsOfReads =
    responses === undefined || quietMs === undefined ? whole : { silenceMs, responses, quietMs };

  const release = (error?: Error): void => {
    const held = client;
    client = undefined;
    if (held !== undefined && error !== undefined && isSilence(error)) hung.giveUp(held, error);
    else held?.release(error);
  };

  /** Sends the statements: in one message if all of them can be prepared, or else one after the other. */
  async function send(queries: readonly Statement[]): Promise<PipelinedResult> {
    if (client === undefined && transaction === 'open') {
      return { results: [], error: new Error('the connection was lost') };
    }
    try {
      client ??= await (isRead(queries) ? pool.connect() : hung.connect());
    } catch (error) {
      return { results: [], error };
    }
    const named = namedOf(queries, nameOf);
    const limits = mayCommit(queries) ? whole : limitsOfReads;
    const answer = await (named === undefined
      ? sendSeparately(client, queries, nameOf, limits)
      : sendPipelined(client, named, limits));
    if (responses !== undefined && answer.results.length > 0) responses.lastMs = performance.now();
    return answer;
  }

  /** Returns whether the message ends a transaction with its changes, or is a change without a transaction. */
  function mayCommit(queries: readonly Statement[]): boolean {
    const isInside = transaction === 'open' || queries[0] === begin;
    return isInside ? queries.includes(commit) : !isRead(queries);
  }

  async function ask(queries: readonly Statement[]): Promise<readonly StatementResult[]> {
    const { results, error } = await send(queries);
    // The first result is the one of `begin`.
    if (queries[0] === begin && results.length > 0) transaction = 'open';
    if (error === undefined) return results;
    if (isConnectionLost(error)) release(error as Error);
    const marked = markUnavailable(error);
    if (marked instanceof Error) Error.captureStackTrace(marked);
    onFailure?.(marked);
    throw marked;
  }

  /**
   * Sends the statements, and sends them again on another connection if the first one breaks before it responds, as all
   * idle connections do after a restart of the server. Use it only for statements that change nothing, or whose changes
   * are not committed.
   */
  async function askTwice(queries: readonly Statement[]): Promise<readonly StatementResult[]> {
    const before = transaction;
    try {
      return await ask(queries);
    } catch (error) {
      if (!isBrokenAtOnce(error) || client !== undefined || transaction !== before) throw error;
      return ask(queries);
    }
  }

  function takeDeferred(): Statement[] {
    if (deferred.length === 0) return deferred;
    const taken = deferred;
    deferred = [];
    return taken;
  }

  /** Begins the transaction, together with the deferred statements and `more`. */
  async function open(more: readonly Statement[]): Promise<readonly StatementResult[]> {
    try {
      return await askTwice([begin, ...takeDeferred(), ...more]);
    } catch (error) {
      if (transaction !== 'open') release(error as Error);
      throw error;
    }
  }

  async function runInside(
    query: Statement,
    { commits = false }: StatementOptions,
  ): Promise<StatementResult> {
    const isEnd = commits && settings === '';
    if (transaction === 'announced') {
      // A message that commits is never sent twice.
      const results = await open(isEnd ? [] : [query]);
      if (!isEnd) return results.at(-1)!;
    }
    if (!isEnd) return (await ask([...takeDeferred(), query])).at(-1)!;
    const results = await ask([...takeDeferred(), query, commit]);
    requireCommitted(results);
    transaction = 'ended';
    release();
    return results.at(-2)!;
  }

  async function runAlone(query: Statement, once: typeof ask): Promise<StatementResult> {
    try {
      return (await once([query]))[0]!;
    } finally {
      release();
    }
  }

  async function run<Row>(query: Statement, options: StatementOptions): Promise<QueryResult<Row>> {
    const { isLast = false, commits = false, isDeferred = false } = options;
    if (transaction === 'ended') throw statementAfterLast();
    if (transaction === 'none')
      return resultOf(await runAlone(query, isPlainRead(query.sql) ? askTwice : ask));
    if (isDeferred && settings === '' && deferred.length < MAX_DEFERRED) {
      deferred.push(query);
      return { rows: [] };
    }
    if (transaction === 'announced' && !hasModes && deferred.length === 0) {
      // Without settings, a single statement needs no transaction. Settings last for a transaction.
      if ((isLast || commits) && settings === '') {
        transaction = 'ended';
        return resultOf(await runAlone(query, ask));
      }
      if (isPlainRead(query.sql)) return resultOf(await runAlone(query, askTwice));
    }
    return resultOf(await runInside(query, options));
  }

  async function end(how: 'commit' | 'rollback'): Promise<void> {
    try {
      if (how === 'commit' && deferred.length > 0 && transaction === 'announced') {
        const [only] = deferred;
        if (deferred.length === 1 && !hasModes) return void (await runAlone(only!, ask));
        await open([]);
      }
      // The server has already rolled back the transaction of a lost connection.
      if (transaction !== 'open' || (how === 'rollback' && client === undefined)) return;
      if (how === 'rollback') await ask([command('rollback')]);
      else requireCommitted(await ask([...takeDeferred(), commit]));
    } catch (error) {
      release(error as Error);
      throw error;
    } finally {
      deferred = [];
      transaction = 'none';
      release();
    }
  }

  /** Runs the work while no other statement of this unit of work is running. */
  async function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const entered = mutex.acquire();
    if (entered !== undefined) await entered;
    try {
      return await work();
    } finally {
      mutex.release();
    }
  }

  return {
    executeQuery<Row>(query: CompiledQuery, options: StatementOptions = {}) {
      const statement = { ...query, isPrepared: options.isPrepared ?? false };
      return inTurn(() => run<Row>(statement, options));
    },
    async *streamQuery() {
      yield* [];
      throw new Error('rows are read whole: streaming is not supported');
    },
    begin({ isolationLevel, accessMode }: TransactionSettings) {
      const modes = [isolationLevel && `isolation level ${isolationLevel}`, accessMode].filter(Boolean);
      hasModes = modes.length > 0;
      if (hasModes) begin = command(`start transaction ${modes.join(' ')}${settings}`);
      transaction = 'announced';
    },
    isHeld: () => transaction === 'open',
    end: (how) => inTurn(() => end(how)),
    release: () => release(),
  };
}

/** Returns the statements as prepared statements; undefined if one of them cannot be prepared. */
function namedOf(queries: readonly Statement[], nameOf: NameOf): NamedStatement[] | undefined {
  const named: NamedStatement[] = [];
  for (const query of queries) {
    const { sql, parameters } = query;
    const name = isNameable(query) && parameters.every(isWireValue) ? nameOf(sql) : undefined;
    if (name === undefined) return undefined;
    named.push({ name, sql, parameters });
  }
  return named;
}

/**
 * Returns whether a statement may be prepared under a name.
 *
 * NOTE: the texts of the entity manager vary with the length of lists, and a prepared `select *` fails after a column
 * was added. A text with several commands cannot be prepared; only migrations send such texts.
 */
function isNameable(query: Statement): boolean {
  return query.isPrepared || (query.query.kind !== 'RawNode' && query.parameters.length > 0);
}

async function sendSeparately(
  client: PoolClient,
  queries: readonly Statement[],
  nameOf: NameOf,
  limits: SilenceLimits,
): Promise<PipelinedResult> {
  const results: StatementResult[] = [];
  try {
    for (const query of queries) {
      const { sql, parameters } = query;
      const values = parameters as unknown[];
      const name = isNameable(query) ? nameOf(sql) : undefined;
      const sent = client.query({ ...(name !== undefined && { name }), text: sql, values });
      const { rows, command: tag, rowCount } = await unlessSilent(sent, limits);
      results.push({ rows, tag: `${tag} ${rowCount ?? 0}` });
    }
    return { results };
  } catch (error) {
    return { results, error };
  }
}

function unlessSilent<Result>(sent: Promise<Result>, limits: SilenceLimits): Promise<Result> {
  const { promise, reject } = Promise.withResolvers<never>();
  const stop = watchSilence(limits, () => reject(silence()));
  return Promise.race([sent, promise]).finally(stop);
}

/**
 * Requires that `commit` has committed: PostgreSQL responds with `ROLLBACK` when a statement of the transaction has
 * failed.
 */
function requireCommitted(results: readonly StatementResult[]): void {
  if (results.at(-1)?.tag.startsWith('ROLLBACK') === true) {
    throw new Error('the transaction was rolled back, because one of its statements had failed');
  }
}

const counting = /^(?:INSERT|UPDATE|DELETE|MERGE)\b.* (\d+)$/;

function resultOf<Row>({ rows, tag }: StatementResult): QueryResult<Row> {
  if (tag.startsWith('SELECT')) return { rows: rows as Row[] };
  const count = counting.exec(tag)?.[1];
  return count === undefined
    ? { rows: rows as Row[] }
    : { rows: rows as Row[], numAffectedRows: BigInt(count) };
}
