import { checkpointFile } from '../../adapters/checkpoint-file.ts';
import { systemClock } from '../../adapters/runtime.ts';
import { requireMigrated, waitUntilWritable } from '../../admin/administration.ts';
import { requireMasterKey } from '../../admin/open-key-store.ts';
import type { CellSettings } from '../../config/cells.ts';
import type { ServeConfig } from '../../config/config.ts';
import { createAppDirectory } from '../../domain/access/apps/app.ts';
import { sealStoredTestCodes } from '../../domain/access/apps/test-account-codes.ts';
import { makeVoucherKeys } from '../../domain/access/key-quorums/voucher-keys.ts';
import { createAuditTrail } from '../../domain/base/audit/audit-log.ts';
import { idempotencyKeys } from '../../domain/base/idempotency/idempotency-keys.ts';
import { singleUseSignatures } from '../../domain/base/replay-protection/single-use-signatures.ts';
import { entities } from '../../domain/tables.ts';
import { createUserTokens } from '../../domain/wallets/tokens/access-tokens.ts';
import { createUseLog } from '../../domain/wallets/wallet-uses/use-log.ts';
import { registry } from '../../generated/registry.ts';
import { FIND_DUE_WORK } from '../../jobs/find-due-work.ts';
import { heartbeat } from '../../jobs/heartbeat.ts';
import { type RestoreWatch, watchRestores } from '../../jobs/watch-restores.ts';
import type { ServerMetrics } from '../../observability/server-metrics.ts';
import type { WriteFreeze } from '../../ports/audit.ts';
import type { KeyStore } from '../../ports/key-store.ts';
import type { Services } from '../../ports/operation-context.ts';
import type { Log } from '../../ports/runtime.ts';
import type { Admission } from '../../server/admission.ts';
import { recordDenials } from '../../server/audit.ts';
import { createAuthenticate } from '../../server/authenticate.ts';
import type { Cell } from '../../server/cells.ts';
import { type FailureLimit, type RateLimitOptions, rateLimitOfApp } from '../../server/rate-limit.ts';
import { createReplicaReads, type ReplicaReads } from '../../server/replica-reads.ts';
import { bindHandlers } from '../../server/run-operation.ts';
import { committingUnlessFrozen, inUnitOf, type OpenUnit, unitsOf } from '../../server/unit-of-work.ts';
import type { CheckResponse } from '../../server/validation-issues.ts';
import { isSchemaLost, isSessionLost } from '../../storage/database-errors.ts';
import { type Database, openDatabase } from '../../storage/open-database.ts';
import {
  isPooledByTransaction,
  postgresPool,
  QUIET_MS,
  shortTimeouts,
} from '../../storage/postgres-dialect.ts';
import { watchReplica } from '../../storage/replica-lag.ts';
import { identifyDatabase } from '../../storage/schema/identify-database.ts';
import { type BesideRequests, jobUnits, startBesideRequests } from '../jobs.ts';
import { rateLimiterFor } from '../listen.ts';
import { countFailures } from '../monitoring.ts';
import { watchDepartures } from './departures.ts';

/** CHOICE: a cell counts as unavailable after this time without a heartbeat. Heartbeats are a second apart. */
const SILENT_MS = 5_000;
const MASTER_KEY_ADVICE = 'start with the master key that they were made with';

/** The parts of a server that all its cells share. */
export interface SharedParts {
  readonly config: Pick<ServeConfig, 'afterPromotion' | 'rateLimit' | 'usersPerMinute'>;
  readonly services: Omit<Services, 'uses'>;
  readonly metrics: ServerMetrics | undefined;
  readonly check: CheckResponse;
  readonly failures: FailureLimit | undefined;
}

/** The connections of a server to the database of a cell. They are opened without waiting for the database. */
export interface CellConnections {
  readonly settings: CellSettings;
  readonly database: Database;
  /** Jobs use separate connections, so that jobs that hang do not take connections from requests. */
  readonly jobsDatabase: Database;
  /** Heartbeats use a separate connection, so that a busy process does not appear to be dead. */
  readonly pulse: Database;
  /** Rate limits are settled on a separate connection. No request waits for it. */
  readonly counters: CountingPool;
  readonly replica: Awaited<ReturnType<typeof openReplica>>;
  /** Sets a function that is called when another database may have taken over. */
  onDoubt(doubt: () => void): void;
  close(): Promise<void>;
}

/** The parts of a server that belong to one cell. */
interface CellParts {
  readonly admission: Admission | undefined;
  /**
   * Called with the identity of the database before the first job runs.
   *
   * @throws StartError when another cell of this server has the same database.
   */
  readonly claim: (identity: string) => void;
  /**
   * Finds the cell that has an app which has left this cell; undefined if none is known to have it yet. Undefined if no
   * app can leave.
   */
  readonly findNext: ((appId: string) => Promise<OpenCell | undefined>) | undefined;
  /** How long to wait for a read-only database; undefined for the default. */
  readonly recoveryMs: number | undefined;
}

/** A cell that has started: its jobs run, and it handles requests. */
export interface OpenCell extends Cell {
  readonly services: Services;
  readonly database: Database;
  readonly openUnit: OpenUnit;
  /** Opens units of work on the connections of jobs. */
  readonly unitsOfJobs: OpenUnit;
  readonly freeze: WriteFreeze;
  /**
   * Requires that the keys of this database were sealed under the configured master keys.
   *
   * @throws StartError
   */
  requireMasterKey(of: KeyStore): Promise<void>;
  /** Creates the voucher keys of apps with logins. Returns the apps that this cell does not have. */
  prepareLogins(of: KeyStore): Promise<readonly string[]>;
  /** Queries the database. Rejects while the database cannot be used. */
  checkReady(): Promise<void>;
  /** Returns whether a heartbeat was stored in the database within the last seconds. Does not query the database. */
  isAlive(): boolean;
  /** Stops the jobs. The connections stay open. */
  close(): Promise<void>;
}

export async function connectCell(
  settings: CellSettings,
  { log, metrics }: { readonly log: Log; readonly metrics: ServerMetrics | undefined },
): Promise<CellConnections> {
  const { name, databaseUrl: url, poolSize } = settings;
  let doubt = (): void => undefined;
  const onConnectionError = (err: Error): void => {
    log.warn({ err, cell: name }, 'lost a connection to the database');
    doubt();
  };
  const count = countFailures(metrics);
  const responses = { lastMs: Number.NEGATIVE_INFINITY };
  const databaseOf = (size: number, quietMs?: number) =>
    openDatabase(entities, {
      ...{ kind: 'postgres', url, poolSize: size, onConnectionError, responses },
      ...(quietMs !== undefined && { quietMs }),
      onFailure(error) {
        count?.(error);
        if (isSessionLost(error) || isSchemaLost(error)) doubt();
      },
    });
  const database = await databaseOf(poolSize, QUIET_MS);
  const jobsDatabase = await databaseOf(jobsPoolSize(poolSize));
  // Heartbeats get a response every second. A request with a slow statement is therefore not refused after `QUIET_MS`
  // while the database responds.
  const pulse = await openDatabase(entities, {
    ...{ kind: 'postgres', url, poolSize: 1, onConnectionError, responses },
    onFailure(error) {
      if (isSchemaLost(error)) doubt();
    },
  });
  const counters = postgresPool({ connectionString: url, max: 1 }, onConnectionError, shortTimeouts);
  const replica = await openReplica(settings, database, log);
  return {
    ...{ settings, database, jobsDatabase, pulse, counters, replica },
    onDoubt(given) {
      doubt = given;
    },
    async close() {
      await replica?.close();
      await Promise.all([database.close(), jobsDatabase.close(), pulse.close(), counters.end()]);
    },
  };
}

/**
 * Starts a cell: identifies its database, starts the jobs and binds the handlers.
 *
 * @throws StartError if the database cannot be reached, does not match this version, or has keys that were sealed
 * under other master keys.
 */
export async function startCell(
  { settings, database, jobsDatabase, pulse, counters, replica, onDoubt }: CellConnections,
  { config, services: shared, metrics, check, failures }: SharedParts,
  { admission, claim, recoveryMs, findNext }: CellParts,
): Promise<OpenCell> {
  const { name } = settings;
  const { log, keyStore, ids, clock, machine } = shared;
  const departures = findNext !== undefined ? watchDepartures({ log, cell: name }) : undefined;
  const units = unitsOf(database, metrics?.transaction);
  const guarded = (plain: OpenUnit): OpenUnit => departures?.guard(plain) ?? plain;
  const unitsOfJobs = guarded(unitsOf(jobsDatabase, metrics?.transaction));
  const uses = createUseLog({
    ...{ inUnit: inUnitOf(guarded(units)), log, hasLeft: departures?.hasLeft },
    findOther: async (appId) => (await findNext?.(appId))?.services.uses,
  });
  const services: Services = { ...shared, uses };
  // The start uses the connection of the heartbeats. The connections for requests are opened on demand. If the start
  // opened them, hundreds of cells would open hundreds of connections that are not needed yet.
  const starting = inUnitOf(unitsOf(pulse));
  const audit = createAuditTrail({
    ...{ keyStore, entropy: shared.entropy, inUnit: starting },
    reader: () => pulse.orm.em.fork(),
  });
  const beats = jobUnits(unitsOf(pulse), services, { job: 'stay-alive', audit });
  const restores: RestoreWatch = watchRestores({
    // Identify the database outside of the check's transaction, which then consists of plain reads and needs no
    // `begin`.
    identify: () => identifyDatabase(pulse.orm.em.fork()),
    services,
    inUnit: inUnitOf(unitsOf(pulse)),
    afterPromotion: config.afterPromotion,
    keeper: settings.checkpointFile === undefined ? undefined : checkpointFile(settings.checkpointFile),
  });
  onDoubt(() => restores.doubt());
  let beside: BesideRequests | undefined;
  const close = async (): Promise<void> => {
    departures?.stop();
    await beside?.jobs.stop();
    await services.uses
      .flush()
      .catch((err: unknown) => log.error({ err, cell: name }, 'failed to record uses of wallets'));
  };
  try {
    await requireMigrated(pulse);
    await waitUntilWritable(pulse, log, recoveryMs === undefined ? {} : { limitMs: recoveryMs });
    claim((await identifyDatabase(pulse.orm.em.fork())).cluster);
    await requireMasterKey(pulse, keyStore, MASTER_KEY_ADVICE);
    await restores.open();
    await audit.open();
    // INVARIANT: background work starts only once it is known whether the database was restored.
    const alive = heartbeat({
      services,
      inUnit: inUnitOf(beats),
      moves: departures?.watch,
      onTakeOver: () => beside?.jobs.wakeSoon(FIND_DUE_WORK),
    });
    beside = startBesideRequests(services, units, {
      alive,
      ...{ audit, restores, jobUnits: unitsOfJobs },
      observe: metrics?.job,
    });
    const { jobs } = beside;
    const openUnit = guarded(beside.openUnit);
    const openUnitOfRequests = committingUnlessFrozen(openUnit, restores.freeze);
    departures?.connect({ alive, jobs, flush: () => services.uses.flush() });
    await sealStoredTestCodes(keyStore, starting);
    const openedMs = machine.now();
    return {
      ...{ name, services, database, openUnit, unitsOfJobs, freeze: restores.freeze, close },
      requireMasterKey: (of) => requireMasterKey(database, of, MASTER_KEY_ADVICE),
      prepareLogins: (of) => inUnitOf(units)((em) => makeVoucherKeys({ em, ids, keyStore: of })),
      async checkReady() {
        await database.readiness?.check();
      },
      isAlive: () => machine.now() - Math.max(openedMs, alive.lastBeatMs()) < SILENT_MS,
      authenticate: createAuthenticate({
        apps: createAppDirectory(database.orm, clock),
        userTokens: createUserTokens(database.orm, services),
        ...{ clock, failures },
      }),
      handlers: bindHandlers(registry, {
        ...{ services, openUnit: openUnitOfRequests, check, admission, audit, freeze: restores.freeze },
        idempotency: idempotencyKeys(),
        singleUse: singleUseSignatures(services.safeguards),
        replica: replica?.readsBeside(openUnit),
      }),
      moves: departures,
      rateLimiter: await rateLimiterFor(rateLimitOf(config, { settings, counters, log }), metrics),
      recordDenial: recordDenials({ audit, openUnit, machine: systemClock }),
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * Returns the number of connections for jobs.
 *
 * CHOICE: jobs have half as many connections as requests.
 */
function jobsPoolSize(ofRequests: number): number {
  return Math.max(2, Math.ceil(ofRequests / 2));
}

type CountingPool = NonNullable<RateLimitOptions['postgres']>['pool'] & { end(): Promise<void> };

function rateLimitOf(
  { rateLimit, usersPerMinute }: SharedParts['config'],
  { settings, counters, log }: Pick<CellConnections, 'settings' | 'counters'> & { readonly log: Log },
): RateLimitOptions | undefined {
  if (rateLimit === undefined) return undefined;
  const pool = isPooledByTransaction(settings.databaseUrl) ? unnamed(counters) : counters;
  return { ...rateLimitOfApp(rateLimit, usersPerMinute), postgres: { pool, log } };
}

/** Returns a pool that uses no named prepared statements. */
function unnamed(pool: CountingPool): CountingPool {
  const query: CountingPool['query'] = ({ text, values }) =>
    pool.query({ text, ...(values === undefined ? {} : { values }) });
  return Object.assign(Object.create(pool), { query });
}

/** A read replica of the database, from which lists are read. */
interface OpenedReplica {
  /**
   * Returns the rules for reading from the replica.
   *
   * @param primary opens units of work on the primary database.
   */
  readsBeside(primary: OpenUnit): ReplicaReads;
  close(): Promise<void>;
}

const now = (): number => performance.now();

/**
 * Opens the replica, or returns undefined if none is configured. The server starts without waiting for it, and reads
 * everything from the primary until the replica can be reached.
 */
async function openReplica(
  { replicaUrl, poolSize }: Pick<CellSettings, 'replicaUrl' | 'poolSize'>,
  primary: Database,
  log: Log,
): Promise<OpenedReplica | undefined> {
  if (replicaUrl === undefined) return undefined;
  const replica = await openDatabase(entities, {
    kind: 'postgres',
    url: replicaUrl,
    poolSize,
    onConnectionError: (err) => log.warn({ err }, 'lost a connection to the replica'),
  });
  const lag = watchReplica({
    ...{ primary, replica, now },
    onChange: (isKnown) =>
      isKnown
        ? log.info({}, 'lists are read from the replica')
        : log.warn({}, 'the replica cannot be used; lists are read from the primary'),
  });
  return {
    readsBeside: (openPrimary) =>
      createReplicaReads({ primary: openPrimary, replica: unitsOf(replica), lagMs: lag.lagMs, now }),
    async close() {
      await lag.close();
      await replica.close();
    },
  };
}
