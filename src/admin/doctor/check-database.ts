import { systemClock } from '../../adapters/runtime.ts';
import type { CellSettings } from '../../config/cells.ts';
import type { ServeConfig } from '../../config/config.ts';
import { settings } from '../../config/settings.ts';
import type { KeyStoreSettings } from '../../config/signer.ts';
import { findUnfinishedMoves } from '../../domain/base/processes/server-processes.ts';
import { findRestore } from '../../domain/base/restores/restores.ts';
import { entities } from '../../domain/tables.ts';
import { findLostWallets } from '../../domain/wallets/wallet-authorities/lost-wallets.ts';
import { checkMasterKey } from '../../domain/wallets/wallets/wallet-keys.ts';
import { namedContracts } from '../../engine/authorization/requested/built-part.ts';
import type { KeyStore } from '../../ports/key-store.ts';
import { type Database, openDatabase } from '../../storage/open-database.ts';
import { findClusterFault, findOwner, hasCitus } from '../../storage/schema/citus.ts';
import { type AskDatabase, findSchemaFault } from '../../storage/schema/identify-database.ts';
import { type Finding, fault, ok, warning } from '../../tools/findings.ts';
import { withKeyStore } from '../open-key-store.ts';
import { checkConnections } from './compare-connections.ts';

/** The oldest version that PostgreSQL's developers still maintain. */
const OLDEST_VERSION = 140_000;
const SKEW_WARNING_MS = 1_000;
const SKEW_FAULT_MS = 10_000;

/** The connections besides the pool: for rate limits, readiness and heartbeats. */
const OTHER_CONNECTIONS = 4;

type Row = Readonly<Record<string, string | number | boolean>>;

/** Checks a database of `custos serve`, and whether the master key opens its content. Changes nothing. */
export async function checkDatabase(
  config: ServeConfig,
  cell: CellSettings,
  keyStore: KeyStoreSettings,
): Promise<Finding[]> {
  const database = await openDatabase(entities, { kind: 'postgres', url: cell.databaseUrl, poolSize: 1 });
  try {
    const sentMs = systemClock.now();
    const [row] = (await database.orm.em.fork().execute(SETTINGS)) as Row[];
    const skewMs = Number(row!.now_ms) - (sentMs + systemClock.now()) / 2;
    const schema = await schemaFinding(database);
    return [
      ...settingFindings(row!),
      ...(await clusterFindings(database)),
      ...(await checkConnections(cell.databaseUrl)),
      connectionFinding(row!, { ...cell, workers: config.workers }),
      skewFinding(skewMs),
      schema,
      ...(schema.state === 'ok' ? await restoreFindings(database) : []),
      ...(schema.state === 'ok' ? [await ownersFinding(database)] : []),
      ...(schema.state === 'ok' ? await moveFindings(database) : []),
      ...(await keyStoreFindings(keyStore, config, schema.state === 'ok' ? database : undefined)),
    ];
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // The message of `pg` contains neither the URL nor the password.
    const text = `it cannot be used: ${code ?? ''} ${message}`.trimEnd();
    return [
      fault('database', text, 'check DATABASE_URL, the network and the rights of the user'),
      ...(await keyStoreFindings(keyStore, config, undefined)),
    ];
  } finally {
    await database.close();
  }
}

const SETTINGS = `select
  current_setting('server_version_num')::int as version,
  current_setting('fsync') as fsync,
  current_setting('full_page_writes') as full_page_writes,
  current_setting('synchronous_commit') as synchronous_commit,
  current_setting('max_connections')::int as max_connections,
  current_setting('superuser_reserved_connections')::int as reserved_connections,
  current_setting('archive_mode') as archive_mode,
  current_setting('TimeZone') as time_zone,
  current_setting('transaction_read_only') as read_only,
  pg_is_in_recovery() as recovering,
  coalesce((select ssl from pg_stat_ssl where pid = pg_backend_pid()), false) as encrypted,
  extract(epoch from clock_timestamp()) * 1000 as now_ms`;

function settingFindings(row: Row): Finding[] {
  const version = Number(row.version);
  const name = `PostgreSQL ${Math.floor(version / 10_000)}`;
  const findings = [
    version < OLDEST_VERSION
      ? warning('database', `${name} is no longer maintained`, 'upgrade to a newer major version')
      : ok('database', `${name}, time zone ${row.time_zone}`),
  ];
  if (row.recovering === true || row.read_only === 'on')
    findings.push(fault('database', 'it is read-only', 'name the primary in DATABASE_URL, not a standby'));
  for (const setting of ['fsync', 'full_page_writes', 'synchronous_commit'] as const) {
    if (row[setting] !== 'off') continue;
    const text = `${setting} is off: acknowledged payments can be lost in a crash`;
    findings.push(fault('database', text, `set \`${setting} = on\` in postgresql.conf`));
  }
  if (row.archive_mode === 'off')
    findings.push(
      warning('backup', 'archive_mode is off', 'archive the WAL, or make sure that your provider does'),
    );
  if (row.encrypted !== true)
    findings.push(
      warning('database', 'the connection is not encrypted', 'add `sslmode=verify-full` unless it is local'),
    );
  return findings;
}

function connectionFinding(
  row: Row,
  { poolSize, workers }: Pick<CellSettings, 'poolSize'> & Pick<ServeConfig, 'workers'>,
): Finding {
  const room = Number(row.max_connections) - Number(row.reserved_connections);
  const needed = (poolSize + OTHER_CONNECTIONS) * workers;
  const text = `${needed} connections for ${workers} process(es) here, of ${room} (max_connections)`;
  if (needed > room)
    return fault('connections', text, `raise max_connections, or lower ${settings.databasePool.variable}`);
  // During a rolling restart, the old and the new processes run at the same time.
  if (2 * needed > room)
    return warning('connections', text, 'a rolling restart, or a second host, needs the same number again');
  return ok('connections', text);
}

function skewFinding(skewMs: number): Finding {
  const text = `that of the database is ${(Math.abs(skewMs) / 1000).toFixed(1)} s ${skewMs < 0 ? 'behind' : 'ahead'}`;
  if (Math.abs(skewMs) < SKEW_WARNING_MS) return ok('clock', text);
  const advice = 'run NTP on both machines: deadlines of signed requests depend on the clock';
  return Math.abs(skewMs) < SKEW_FAULT_MS ? warning('clock', text, advice) : fault('clock', text, advice);
}

/** Reports how Citus affects this database, and examines the node that has the rows. */
async function clusterFindings(database: Database): Promise<Finding[]> {
  const ask: AskDatabase = (sql) => database.orm.em.fork().execute(sql);
  if (!(await hasCitus(ask))) return [];
  const found = await findClusterFault(ask);
  if (found !== undefined) return [fault('cluster', found.text, found.advice)];
  const owner = await findOwner(ask);
  if (owner === undefined)
    return [ok('cluster', 'the coordinator of Citus has the rows of this schema, which is not distributed')];
  const { group, lock_timeout: lockTimeout } = owner;
  const text = `node ${group} of Citus has the rows of this schema, and the coordinator its locks and sequences: both must be up, and both must be backed up`;
  const [settingsThere] = await ask<Row>(`${SETTINGS} from (select count(*) from database_identity) as here`);
  const there = settingFindings(settingsThere!).filter(({ state }) => state !== 'ok');
  return [
    lockTimeout === '0'
      ? warning('cluster', `sessions on node ${group} wait for locks without a limit`, LOCK_ADVICE)
      : ok('cluster', text),
    ...there.map((each) => ({ ...each, name: `node ${group}: ${each.name}` })),
  ];
}

const LOCK_ADVICE =
  'run `custos cells add --distribute` again, which sets the `lock_timeout` of the role on all nodes';

async function schemaFinding(database: Database): Promise<Finding> {
  const em = database.orm.em.fork();
  const found = await findSchemaFault(database.orm, async (sql) => em.execute(sql));
  if (found === undefined) return ok('schema', 'it is that of this version');
  return fault('schema', found, 'see `custos migrate --check`');
}

/**
 * NOTE: the servers detect that a database was restored, not this check. It finds nothing before a server has started.
 */
async function restoreFindings(database: Database): Promise<Finding[]> {
  const restore = await findRestore(database.orm.em.fork());
  if (restore === undefined || restore.releasedAtMs !== null) return [];
  const text = `they are held since ${new Date(restore.noticedAtMs).toISOString()}, because the database was restored (${restore.cause})`;
  return [fault('changes', text, 'follow "After a restore" in docs/backups.md: `custos restored report`')];
}

async function moveFindings(database: Database): Promise<Finding[]> {
  const moves = await findUnfinishedMoves(database.orm.em.fork());
  return moves.map(({ appId, otherCell }) =>
    fault(
      'moves',
      `the app \`${appId}\` is on its way to the cell \`${otherCell}\`, and its requests are refused`,
      `run \`custos apps move ${appId} --to ${otherCell}\` again, or abort it with --abort`,
    ),
  );
}

/** Finds wallets whose owners are lost. The server notices such a wallet only when it is used. */
async function ownersFinding(database: Database): Promise<Finding> {
  const { examined, hasMore, lost, named } = await findLostWallets(database.orm.em.fork());
  const known = `${examined} wallet(s) whose owner the signer verifies${hasMore ? ', and there are more' : ''}`;
  if (lost === 0) return ok('owners', `no owner is missing among ${known}`);
  const names = named.map(({ id, appId }) => `\`${id}\` of the app \`${appId}\``).join(', ');
  const more = lost > named.length ? ` and ${lost - named.length} more` : '';
  const text = `${lost} of ${known}, cannot be used by it, because the key quorum that the signer knows was deleted: ${names}${more}`;
  return warning('owners', text, 'take the rows of that key quorum from a backup, see docs/production.md');
}

/** Seals and opens a test value. If the database can be read, also opens the stored values. */
async function keyStoreFindings(
  settings: KeyStoreSettings,
  config: ServeConfig,
  database: Database | undefined,
): Promise<Finding[]> {
  const name = settings.kind === 'socket' ? 'signer' : 'master key';
  try {
    return await withKeyStore(settings, async (keyStore) => [
      await tryKeyStore(name, keyStore, database),
      ...contractFindings(config, keyStore),
    ]);
  } catch (error) {
    const advice =
      'start with the master key that the wallets were made with, and check the service and its token';
    return [fault(name, (error as Error).message, advice)];
  }
}

/**
 * Compares the smart contracts of the server's settings with those of the signer. A separate signer has its own
 * settings.
 */
function contractFindings({ swapRouters, rewards }: ServeConfig, { contracts }: KeyStore): Finding[] {
  if (contracts === undefined) return [];
  const own = namedContracts({ swapRouters, rewardDistributors: rewards.distributors });
  const missing = own.filter((each) => !contracts.includes(each));
  if (missing.length === 0) return [];
  const text = `it lacks contracts of this server, which owned wallets cannot use: ${missing.join(', ')}`;
  const advice = `start \`custos signer\` with the same ${settings.swapRouter.variable} and ${settings.rewardDistributor.variable}`;
  return [warning('signer contracts', text, advice)];
}

async function tryKeyStore(
  name: string,
  keyStore: KeyStore,
  database: Database | undefined,
): Promise<Finding> {
  const binding = { purpose: 'doctor', rowId: 'doctor', appId: 'doctor' };
  await keyStore.rewrap(await keyStore.seal(Buffer.from('doctor'), binding), binding);
  if (database === undefined) return ok(name, 'it seals and opens; the stored keys were not tried');
  const em = database.orm.em.fork();
  await em.begin();
  try {
    await checkMasterKey(em, keyStore);
  } finally {
    // INVARIANT: the doctor changes nothing.
    await em.rollback();
  }
  return ok(name, 'it seals and opens, and opens what is stored');
}
