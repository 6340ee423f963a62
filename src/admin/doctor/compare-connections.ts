import { systemEntropy } from '../../adapters/runtime.ts';
import { isPooledByTransaction, postgresPool } from '../../storage/postgres-dialect.ts';
import { type Finding, fault, ok, warning } from '../../tools/findings.ts';

/*
 * Advisory locks, row locks and sequences of one database node have no effect on another. If the address leads to
 * several nodes, two servers could send the same payment, each under its own lock. The check therefore compares
 * several new connections.
 */
const NAME = 'one server';

/**
 * CHOICE: this many new connections detect a proxy that alternates between two nodes, and in 7 of 8 cases a proxy
 * that chooses at random.
 */
const CONNECTIONS = 4;
const LIMIT_MS = 5_000;

type Row = Readonly<Record<string, unknown>>;

/** Sends one statement on one connection. */
export type Ask = (text: string, values?: readonly unknown[]) => Promise<readonly Row[]>;

/** Checks that all connections lead to one PostgreSQL server, and that its sessions persist. */
export async function checkConnections(url: string): Promise<Finding[]> {
  const limits = { connectionTimeoutMillis: LIMIT_MS, query_timeout: LIMIT_MS };
  const pool = postgresPool(
    { connectionString: url, max: CONNECTIONS, ...limits },
    () => undefined,
    undefined,
  );
  const opened: { readonly ask: Ask; close(): void }[] = [];
  try {
    // Connections are opened one after the other, so that all open ones are known when one of them fails.
    while (opened.length < CONNECTIONS) {
      const client = await pool.connect();
      opened.push({
        ask: async (text, values = []) => (await client.query(text, [...values])).rows as Row[],
        close: () => client.release(true),
      });
    }
    const asks = opened.map(({ ask }) => ask);
    return await compareConnections(asks, {
      isPooled: isPooledByTransaction(url),
      marks: [...systemEntropy.bytes(8)],
    });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // The message of `pg` contains neither the URL nor the password.
    const text = `${CONNECTIONS} connections could not be compared: ${code ?? ''} ${message}`;
    return [
      warning(NAME, text.trimEnd(), 'let the user open as many at once, or compare the nodes yourself'),
    ];
  } finally {
    for (const { close } of opened) close();
    await pool.end();
  }
}

interface Comparison {
  /** Whether the URL says that a session lasts for only one transaction. */
  readonly isPooled: boolean;
  /** Eight random bytes for lock keys that nobody else uses. */
  readonly marks: readonly number[];
}

/**
 * Compares what several connections see of the server.
 *
 * @param asks functions that query over at least two different connections.
 */
export async function compareConnections(
  asks: readonly Ask[],
  { isPooled, marks }: Comparison,
): Promise<Finding[]> {
  const [first, ...others] = asks as [Ask, ...Ask[]];
  const kinds = kindFindings((await first(KIND))[0]!);
  if (kinds.some(({ state }) => state === 'fault')) return kinds;
  const isShared = await isSessionShared(first, others, marks.join('-'));
  const servers = serverFinding(await compareServers(asks, marks));
  const pooler = isShared && !isPooled ? [fault(NAME, POOLED, POOLED_ADVICE)] : [];
  return [...kinds, ...pooler, servers];
}

const POOLED =
  'sessions last for a transaction only, as behind a pooler in transaction mode: limits of statements and locks, and named statements, are lost or mixed up';
const POOLED_ADVICE =
  'add `pgbouncer=true` to the query of DATABASE_URL, or use a pooler in session mode; see "PgBouncer" in docs/production.md';

const KIND = `select version() as version,
  (select coalesce(string_agg(extname, ', ' order by extname), '') from pg_extension
    where extname in ('citus', 'bdr', 'spock', 'pgactive')) as extensions`;

/**
 * Databases with PostgreSQL's protocol, by their `version()`. None of them shares locks and sequences among all
 * nodes.
 */
const OTHER_DATABASES = [
  [/CockroachDB/i, 'CockroachDB'],
  [/-YB-|Yugabyte/i, 'YugabyteDB'],
  [/Greenplum/i, 'Greenplum'],
  [/Redshift/i, 'Redshift'],
] as const;

function kindFindings({ version, extensions }: Row): Finding[] {
  const other = OTHER_DATABASES.find(([pattern]) => pattern.test(String(version)));
  if (other !== undefined) {
    const text = `it is ${other[1]}, whose locks and sequences are not those of PostgreSQL`;
    return [fault(NAME, text, 'use a PostgreSQL server, alone or with replicas')];
  }
  // `clusterFindings` reports what Citus means.
  if (extensions === '' || extensions === 'citus') return [];
  const text = `it has an extension that lets several nodes write (${String(extensions)}): locks and sequences count only on the node that is asked`;
  return [warning(NAME, text, 'name the same single node in DATABASE_URL of all servers')];
}

/** Returns whether a session setting is lost, or appears on another connection. */
async function isSessionShared(one: Ask, others: readonly Ask[], mark: string): Promise<boolean> {
  const seen = async (ask: Ask): Promise<unknown> =>
    (await ask("select current_setting('custos.doctor', true) as mark"))[0]?.mark;
  await one("select set_config('custos.doctor', $1, false)", [mark]);
  const begun: Ask[] = [];
  try {
    let isTaken = false;
    for (const other of others) {
      // Inside a transaction, a pooler must assign a free session to this connection.
      await other('begin');
      begun.push(other);
      if ((await seen(other)) === mark) isTaken = true;
    }
    return isTaken || (await seen(one)) !== mark;
  } finally {
    for (const other of begun) {
      await other("select set_config('custos.doctor', '', false)");
      await other('commit');
    }
  }
}

interface Server {
  readonly pid: number;
  /** The server's own address and port; empty for a local socket. */
  readonly place: string;
  /** The system identifier of the cluster. */
  readonly cluster: string;
  readonly isRecovering: boolean;
  /** Whether the server sees the lock that the first connection holds. */
  readonly hasLock: boolean;
}

const SERVER = `select pg_backend_pid() as pid,
  coalesce(host(inet_server_addr()) || ':' || inet_server_port(), '') as place,
  (select system_identifier from pg_control_system())::text as cluster,
  pg_is_in_recovery() as recovering,
  exists (select from pg_locks where locktype = 'advisory' and granted and objsubid = 2
    and database = (select oid from pg_database where datname = current_database())
    and classid = $1::bigint::oid and objid = $2::bigint::oid) as has_lock`;

/**
 * Compares the servers that the connections lead to.
 *
 * NOTE: the lock ends with its transaction, like all locks of the server. A session lock would stay in a pooler.
 */
async function compareServers(asks: readonly Ask[], marks: readonly number[]): Promise<Server[]> {
  const lock = [numberOf(marks.slice(0, 4)), numberOf(marks.slice(4))];
  const begun: Ask[] = [];
  try {
    const servers: Server[] = [];
    for (const ask of asks) {
      // All transactions are open at the same time, so that each has a separate session.
      await ask('begin');
      begun.push(ask);
      if (begun.length === 1) {
        const [row] = await ask('select pg_is_in_recovery() as recovering');
        // A standby cannot grant locks.
        if (row?.recovering !== true) await ask('select pg_advisory_xact_lock($1::int, $2::int)', lock);
      }
      const [row] = await ask(SERVER, lock);
      servers.push({
        pid: Number(row!.pid),
        place: String(row!.place),
        cluster: String(row!.cluster),
        isRecovering: row!.recovering === true,
        hasLock: row!.has_lock === true,
      });
    }
    return servers;
  } finally {
    await Promise.all(begun.map((ask) => ask('rollback').catch(() => undefined)));
  }
}

/** Returns a positive number of 31 bits. */
function numberOf(bytes: readonly number[]): number {
  return bytes.reduce((sum, byte) => sum * 256 + byte, 0) % 2 ** 31;
}

function serverFinding(servers: readonly Server[]): Finding {
  const count = servers.length;
  const distinct = (of: (server: Server) => unknown) => [...new Set(servers.map(of))];
  const places = distinct(({ place }) => place).filter((place) => place !== '');
  const where = places.length === 0 ? '' : ` (${places.join(', ')})`;
  const clusters = distinct(({ cluster }) => cluster);
  if (clusters.length > 1) {
    const text = `${count} connections lead to ${clusters.length} clusters${where}, by their system identifiers: ${clusters.join(', ')}`;
    return fault(NAME, text, ONE_NODE);
  }
  const recovering = servers.filter(({ isRecovering }) => isRecovering).length;
  if (recovering > 0 && recovering < count) {
    const text = `${recovering} of ${count} connections lead to a standby, the others to the primary${where}`;
    return fault(NAME, text, ONE_NODE);
  }
  // A standby cannot have locks. Another finding reports that it is a standby.
  const hasLock = recovering > 0 || servers.every((server) => server.hasLock);
  const isApart = distinct(({ pid }) => pid).length === count;
  if (!hasLock || !isApart) {
    const text = `of ${count} connections${where}, not all see a lock that one of them holds: they lead to different nodes`;
    return fault(NAME, text, ONE_NODE);
  }
  return ok(NAME, `${count} connections lead to one server and see its locks`);
}

const ONE_NODE =
  'name the primary alone in DATABASE_URL, or let the proxy lead all connections to it: locks and sequences of one node do not count on another, so payments could be made twice';
