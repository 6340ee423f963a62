import { connectChains } from '../adapters/chain-rpc/connect.ts';
import { checkpointFile } from '../adapters/checkpoint-file.ts';
import { createHttpJwks } from '../adapters/jwks-http.ts';
import { logOf } from '../adapters/log.ts';
import { noCardIssuers, noCustodians, noPrices } from '../adapters/outside-services.ts';
import { merklRewards } from '../adapters/rewards.ts';
import { makeIds, systemClock, systemEntropy } from '../adapters/runtime.ts';
import { routersOnChain } from '../adapters/swap-routers.ts';
import { createWebhookSender, nameServerLookup, publicHttpsOnly } from '../adapters/webhook-http.ts';
import { adminOperations } from '../admin/admin-operations.ts';
import { requireMigrated, waitUntilWritable } from '../admin/administration.ts';
import { requireMasterKey } from '../admin/open-key-store.ts';
import { operatorContext } from '../admin/operator-context.ts';
import { policyAnalysis } from '../admin/policy-analysis.ts';
import type { ServeConfig } from '../config/config.ts';
import { createAppDirectory } from '../domain/access/apps/app.ts';
import { sealStoredTestCodes } from '../domain/access/apps/test-account-codes.ts';
import { makeVoucherKeys } from '../domain/access/key-quorums/voucher-keys.ts';
import { createAuditTrail } from '../domain/base/audit/audit-log.ts';
import { idempotencyKeys } from '../domain/base/idempotency/idempotency-keys.ts';
import { singleUseSignatures } from '../domain/base/replay-protection/single-use-signatures.ts';
import { strictSafeguards } from '../domain/base/safeguards/safeguards.ts';
import { entities } from '../domain/tables.ts';
import { createUserTokens } from '../domain/wallets/tokens/access-tokens.ts';
import { createUseLog } from '../domain/wallets/wallet-uses/use-log.ts';
import { assertBackendsAgree, nativeBackend } from '../engine/crypto/secp256k1.ts';
import { registry } from '../generated/registry.ts';
import { responseValidators } from '../generated/response-validators.js';
import { heartbeat } from '../jobs/heartbeat.ts';
import { type RestoreWatch, watchRestores } from '../jobs/watch-restores.ts';
import type { SignerKeyStore } from '../keys/signer-client.ts';
import { measuredKeyStore, measuredWebhooks } from '../observability/measured.ts';
import type { KeyStore } from '../ports/key-store.ts';
import type { Services } from '../ports/operation-context.ts';
import type { Log } from '../ports/runtime.ts';
import { admissionFor } from '../server/admission.ts';
import { recordDenials } from '../server/audit.ts';
import { createAuthenticate } from '../server/authenticate.ts';
import { createFailureLimit, type RateLimitOptions, rateLimitOfApp } from '../server/rate-limit.ts';
import { bindHandlers } from '../server/run-operation.ts';
import { requestIdsFrom } from '../server/transport-guards.ts';
import { inUnitOf, unitsOf } from '../server/unit-of-work.ts';
import { createResponseCheck } from '../server/validation-issues.ts';
import { isSessionLost } from '../storage/database-errors.ts';
import { openDatabase } from '../storage/open-database.ts';
import { isPooledByTransaction, postgresPool } from '../storage/postgres-dialect.ts';
import { identifyDatabase } from '../storage/schema/identify-database.ts';
import { fiatProvidersOf, hintsOf, tokensNamedOn } from './chains.ts';
import { type BesideRequests, jobUnits, startBesideRequests } from './jobs.ts';
import { followCertificate, type Listening, listen, type WorkerMetrics } from './listen.ts';
import { countFailures, metricsFor, telemetryFor, watchServer } from './monitoring.ts';
import { openReplica } from './replica.ts';

const MASTER_KEY_ADVICE = 'start with the master key that they were made with';

/** Inputs of a production server in addition to its settings. */
export interface ProductionParts {
  /**
   * The signer, which starts while the other parts start. It is closed with the server, even when the server does not
   * start.
   */
  readonly signer: Promise<SignerKeyStore>;
  readonly log?: Log;
  /** Set for one of several workers that share the ports. */
  readonly workers?: WorkerMetrics;
}

/** A running production server. */
export interface Production extends Listening {
  /** Reads the files of the certificate again. */
  reload(): void;
}

/**
 * Starts the production server.
 *
 * @throws StartError if the database does not match this version.
 */
export async function startProduction(
  config: ServeConfig,
  { signer: openingSigner, log = logOf(config), workers }: ProductionParts,
): Promise<Production> {
  assertBackendsAgree();
  const clock = systemClock;
  const entropy = systemEntropy;
  const metrics = await metricsFor(config.adminPort, config.telemetry !== undefined);
  const telemetry = await telemetryFor(config.telemetry, metrics, { entropy, log });
  const ids = makeIds(entropy);
  const jwks = createHttpJwks(clock);
  let restores: RestoreWatch | undefined;
  const onConnectionError = (err: Error): void => {
    log.warn({ err }, 'lost a connection to the database');
    restores?.doubt();
  };
  const count = countFailures(metrics);
  const databaseOf = (poolSize: number) =>
    openDatabase(entities, {
      kind: 'postgres',
      url: config.databaseUrl,
      poolSize,
      onConnectionError,
      onFailure(error) {
        count?.(error);
        if (isSessionLost(error)) restores?.doubt();
      },
    });
  const database = await databaseOf(config.databasePoolSize);
  // The jobs have separate connections, so that jobs that hang do not take connections from requests.
  const jobsDatabase = await databaseOf(jobsPoolSize(config.databasePoolSize));
  // Rate limits are settled on a separate connection. Nothing waits for it.
  const counters = postgresPool(
    { connectionString: config.databaseUrl, max: 1 },
    onConnectionError,
    settlementTimeouts,
  );
  const replica = await openReplica(config, database, log);
  const units = unitsOf(database, metrics?.transaction);
  const unitsOfJobs = unitsOf(jobsDatabase, metrics?.transaction);
  const signer = await openingSigner.catch(async (error: unknown) => {
    await Promise.all([database.close(), jobsDatabase.close(), replica?.close(), counters.end()]);
    throw error;
  });
  const keyStore = measuredKeyStore(signer.keyStore, metrics?.keyStore);
  const chains = connectChains(config.rpc, log, {
    namedTokens: tokensNamedOn,
    observe: metrics?.node,
    observeDisagreement: metrics?.disagreement,
  });
  const services: Services = {
    processId: ids.uuid(),
    clock,
    machine: systemClock,
    entropy,
    ids,
    keyStore,
    jwks,
    chains,
    swapRoutes: routersOnChain({
      ...{ chains, clock },
      routerOf: (caip2) => config.swapRouters.get(caip2)?.router,
      wrappedOf: (caip2) => config.swapRouters.get(caip2)?.wrapped,
    }),
    automationFeeShare: config.automationFeeShare,
    incentives: merklRewards({ ...config.rewards, chains, log }),
    prices: noPrices,
    custodians: noCustodians,
    fiatProviders: fiatProvidersOf(config.bridge, log),
    cardIssuers: noCardIssuers,
    webhooks: measuredWebhooks(
      createWebhookSender({ guard: publicHttpsOnly, lookup: nameServerLookup() }),
      metrics?.webhook,
    ),
    log,
    prefix: config.prefix,
    diagnostics: false,
    safeguards: strictSafeguards,
    uses: createUseLog({ inUnit: inUnitOf(units), log }),
  };
  const audit = createAuditTrail({
    ...{ keyStore, entropy, inUnit: inUnitOf(units) },
    reader: () => database.orm.em.fork(),
  });
  // Heartbeats have a separate connection, so that a busy process does not appear to be dead.
  const pulse = await openDatabase(entities, {
    kind: 'postgres',
    url: config.databaseUrl,
    poolSize: 1,
    onConnectionError,
  });
  const beats = jobUnits(unitsOf(pulse), services, { job: 'stay-alive', audit });
  const alive = heartbeat({ services, inUnit: inUnitOf(beats) });
  restores = watchRestores({
    identify: identifyDatabase,
    services,
    inUnit: inUnitOf(unitsOf(pulse)),
    afterPromotion: config.afterPromotion,
    keeper: config.checkpointFile === undefined ? undefined : checkpointFile(config.checkpointFile),
  });
  let beside: BesideRequests | undefined;
  const finish = async (): Promise<void> => {
    await beside?.jobs.stop();
    await services.uses
      .flush()
      .catch((err: unknown) => log.error({ err }, 'failed to record uses of wallets'));
    await telemetry?.close();
    await replica?.close();
    await Promise.all([
      services.webhooks.close(),
      ...[database.close(), jobsDatabase.close(), pulse.close(), counters.end()],
    ]);
    await signer.close();
  };
  const closeAll = async (): Promise<void> => {
    if (await isDoneWithin(STOP_MS, finish())) return;
    log.error({}, 'shutdown timed out; the next start resumes the work in progress');
  };
  try {
    await requireMigrated(database);
    await waitUntilWritable(database, log);
    await requireMasterKey(database, keyStore, MASTER_KEY_ADVICE);
    await restores.open();
    await audit.open();
    // INVARIANT: background work starts only after it is known whether the database was restored.
    beside = startBesideRequests(services, units, {
      ...{ alive, audit, restores, jobUnits: unitsOfJobs },
      observe: metrics?.job,
    });
    const { openUnit } = beside;
    await sealStoredTestCodes(keyStore, inUnitOf(units));
    const prepareLogins = async (of: KeyStore): Promise<void> => {
      const unknown = await inUnitOf(units)((em) => makeVoucherKeys({ em, ids, keyStore: of }));
      if (unknown.length > 0) log.warn({ app_ids: unknown }, 'CUSTOS_USER_LOGINS_FILE names unknown apps');
    };
    await prepareLogins(keyStore);
    signer.checkKeysBy(async (of) => {
      await requireMasterKey(database, of, MASTER_KEY_ADVICE);
      await prepareLogins(of);
    });
    const apps = createAppDirectory(database.orm, clock);
    const check = createResponseCheck({ mode: config.responseCheck, validators: responseValidators, log });
    const admission = admissionFor(config.admission, log);
    await watchServer(metrics, {
      ...{ services, database, openUnit, admission, freeze: restores.freeze },
      chains: config.rpc,
    });
    const idempotency = idempotencyKeys();
    const singleUse = singleUseSignatures(services.safeguards);
    const handlers = bindHandlers(registry, {
      services,
      openUnit,
      idempotency,
      singleUse,
      check,
      admission,
      audit,
      freeze: restores.freeze,
      replica: replica?.readsBeside(openUnit),
    });
    const newRequestId = requestIdsFrom(entropy);
    const transport = { plainHttp: false, trustedProxies: config.trustedProxies, strictTransport: true };
    const listening = await listen({
      transport,
      mounts: hintsOf(config.bridge, {
        ...{ transport, log, newRequestId, inUnit: inUnitOf(openUnit) },
        fiatProviders: services.fiatProviders,
      }),
      clock,
      log,
      newRequestId,
      config,
      handlers,
      recordDenial: recordDenials({ audit, openUnit, machine: systemClock }),
      authenticate: createAuthenticate({
        apps,
        userTokens: createUserTokens(database.orm, services),
        clock,
        failures:
          config.rateLimit === undefined
            ? undefined
            : createFailureLimit({ ...failuresPerWorker(config.workers), onRefused: metrics?.rateLimited }),
      }),
      admission,
      isHostSigned: false,
      connections: config.connections,
      rateLimit: rateLimitOf(config, counters, log),
      tls: config.tls,
      metrics,
      loggedShare: config.loggedShare,
      tracer: telemetry?.tracer,
      adminHost: config.adminHost,
      adminMounts: adminOperations({
        ...{ adminHost: config.adminHost, clock, log, newRequestId },
        analysis: policyAnalysis({ services, database }),
        context: operatorContext({ database, openUnit, services }),
      }),
      async checkReady() {
        await signer.check();
        await database.readiness?.check();
      },
      drainMs: config.drainMs,
      workers,
    });
    // Without the native library, signing takes 2.4 times the CPU time.
    const curve = nativeBackend === undefined ? 'javascript' : 'libsecp256k1';
    log.info(
      { url: listening.baseUrl, admin: listening.adminUrl, pid: process.pid, secp256k1: curve },
      'ready',
    );
    const certificate =
      config.tls &&
      followCertificate({
        ...{ current: config.tls, log },
        read: config.readCertificate,
        use: listening.setCertificate,
      });
    return {
      ...listening,
      reload: () => certificate?.reload(),
      async close(how) {
        certificate?.close();
        await listening.close(how);
        await closeAll();
        log.info({}, 'stopped');
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

// The time in which the jobs finish their batches and the pool its statements. Both have lower limits of their own.
const STOP_MS = 15_000;

function isDoneWithin(limitMs: number, work: Promise<void>): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), limitMs);
  void work.then(() => resolve(true)).finally(() => clearTimeout(timer));
  return promise;
}

/**
 * CHOICE: high enough for many servers behind one address that restart with an old secret, too low to guess a secret.
 */
const failuresOfAddress = { points: 100, durationSeconds: 10 };

/** CHOICE: jobs have half as many connections as requests. */
function jobsPoolSize(ofRequests: number): number {
  return Math.max(2, Math.ceil(ofRequests / 2));
}

/** A settlement that takes longer is useless, because the next one begins. */
const settlementTimeouts = {
  connectMs: 1_000,
  statementMs: 1_000,
  lockMs: 1_000,
  idleInTransactionMs: 5_000,
  silenceMs: 2_000,
};

/**
 * The limit for each worker. Failures are counted in memory, and the connections of an address reach all workers in
 * turn.
 */
function failuresPerWorker(workers: number): typeof failuresOfAddress {
  return { ...failuresOfAddress, points: Math.ceil(failuresOfAddress.points / workers) };
}

type CountingPool = NonNullable<RateLimitOptions['postgres']>['pool'];

function rateLimitOf(
  { rateLimit, usersPerMinute, databaseUrl }: ServeConfig,
  pool: CountingPool,
  log: Log,
): RateLimitOptions | undefined {
  if (rateLimit === undefined) return undefined;
  return {
    ...rateLimitOfApp(rateLimit, usersPerMinute),
    postgres: { pool: isPooledByTransaction(databaseUrl) ? unnamed(pool) : pool, log },
  };
}

/** Returns a pool whose statements have no names. */
function unnamed(pool: CountingPool): CountingPool {
  const query: CountingPool['query'] = ({ text, values }) =>
    pool.query({ text, ...(values === undefined ? {} : { values }) });
  return Object.assign(Object.create(pool), { query });
}
