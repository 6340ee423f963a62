import { connectChains } from '../adapters/chain-rpc/connect.ts';
import { createHttpJwks } from '../adapters/jwks-http.ts';
import { logOf } from '../adapters/log.ts';
import { noCardIssuers, noCustodians, noPrices } from '../adapters/outside-services.ts';
import { merklRewards } from '../adapters/rewards.ts';
import { makeIds, systemClock, systemEntropy } from '../adapters/runtime.ts';
import { routersOnChain } from '../adapters/swap-routers.ts';
import { createWebhookSender, nameServerLookup, publicHttpsOnly } from '../adapters/webhook-http.ts';
import { adminOperations } from '../admin/admin-operations.ts';
import { operatorContext } from '../admin/operator-context.ts';
import { policyAnalysis } from '../admin/policy-analysis.ts';
import { ONLY_CELL } from '../config/cells.ts';
import type { ServeConfig } from '../config/config.ts';
import { strictSafeguards } from '../domain/base/safeguards/safeguards.ts';
import { assertBackendsAgree, nativeBackend } from '../engine/crypto/secp256k1.ts';
import { isUnavailable } from '../errors.ts';
import { responseValidators } from '../generated/response-validators.js';
import type { SignerKeyStore } from '../keys/signer-client.ts';
import { measuredKeyStore, measuredWebhooks } from '../observability/measured.ts';
import type { KeyStore } from '../ports/key-store.ts';
import type { Services } from '../ports/operation-context.ts';
import type { Log } from '../ports/runtime.ts';
import { admissionFor, sumOfCounts } from '../server/admission.ts';
import { createFailureLimit } from '../server/rate-limit.ts';
import { requestIdsFrom } from '../server/transport-guards.ts';
import { inUnitOf } from '../server/unit-of-work.ts';
import { createResponseCheck } from '../server/validation-issues.ts';
import type { OpenCell, SharedParts } from './cells/open-cell.ts';
import { type Cells, connectCells, openCells } from './cells/open-cells.ts';
import { fiatProvidersOf, hintsOf, tokensNamedOn } from './chains.ts';
import { followCertificate, type Listening, listen, type WorkerMetrics } from './listen.ts';
import { metricsFor, telemetryFor, watchServer } from './monitoring.ts';

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
  const connections = await connectCells(config.cells, { log, metrics });
  const signer = await openingSigner.catch(async (error: unknown) => {
    await connections.close();
    throw error;
  });
  const keyStore = measuredKeyStore(signer.keyStore, metrics?.keyStore);
  const chains = connectChains(config.rpc, log, {
    namedTokens: tokensNamedOn,
    cells: config.cells.cells.length,
    observe: metrics?.node,
    observeDisagreement: metrics?.disagreement,
  });
  const services: Omit<Services, 'uses'> = {
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
  };
  const hasCells = config.cells.directoryUrl !== undefined;
  let cells: Cells | undefined;
  const finish = async (): Promise<void> => {
    await cells?.close();
    await telemetry?.close();
    await Promise.all([services.webhooks.close(), connections.close()]);
    await signer.close();
  };
  const closeAll = async (): Promise<void> => {
    if (await isDoneWithin(STOP_MS, finish())) return;
    log.error({}, 'shutdown timed out; the next start resumes the work in progress');
  };
  try {
    const admission = admissionFor(config.admission, log);
    // Each cell has queues of its own, because requests wait for its connections.
    const admissions = new Map(
      config.cells.cells.map(({ name }) => [
        name,
        hasCells ? admissionFor(config.cells.admission.get(name), log) : admission,
      ]),
    );
    const shared: SharedParts = {
      ...{ config, services, metrics },
      check: createResponseCheck({ mode: config.responseCheck, validators: responseValidators, log }),
      failures:
        config.rateLimit === undefined
          ? undefined
          : createFailureLimit({ ...failuresPerWorker(config.workers), onRefused: metrics?.rateLimited }),
    };
    const opened = await openCells(connections, {
      ...{ shared, admissions },
      maxPerCell: maxPerCell(config),
    });
    cells = opened;
    const prepareLogins = async (of: KeyStore): Promise<void> => {
      const unknown = await unknownToAll(opened.opened(), of);
      if (unknown.length > 0) log.warn({ app_ids: unknown }, 'CUSTOS_USER_LOGINS_FILE names unknown apps');
    };
    await prepareLogins(keyStore);
    signer.checkKeysBy(async (of) => {
      await inEveryCell(opened.opened(), (cell) => cell.requireMasterKey(of));
      await prepareLogins(of);
    });
    await watchServer(metrics, {
      ...{ services, chains: config.rpc, cells: opened.opened },
      admission: admission && { counts: () => sumOfCounts(new Set([admission, ...admissions.values()])) },
      ...{ hasCells, unavailable: opened.unavailable },
    });
    const newRequestId = requestIdsFrom(entropy);
    const transport = { plainHttp: false, trustedProxies: config.trustedProxies, strictTransport: true };
    const listening = await listen({
      transport,
      mounts: hintsOf(config.bridge, {
        ...{ transport, log, newRequestId, fiatProviders: services.fiatProviders },
        units: () => opened.opened().map(({ openUnit }) => inUnitOf(openUnit)),
      }),
      clock,
      log,
      newRequestId,
      config,
      ...opened.routes,
      admission,
      isHostSigned: false,
      connections: config.connections,
      tls: config.tls,
      metrics,
      loggedShare: config.loggedShare,
      tracer: telemetry?.tracer,
      adminHost: config.adminHost,
      adminMounts: adminOperations({
        ...{ adminHost: config.adminHost, clock, log, newRequestId, hasCells },
        parts(cell) {
          const { services: ofCell, database, openUnit } = opened.named(hasCells ? cell : ONLY_CELL);
          return {
            analysis: policyAnalysis({ services: ofCell, database }),
            context: operatorContext({ database, openUnit, services: ofCell }),
          };
        },
      }),
      async checkReady() {
        await signer.check();
        await opened.checkReady();
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

// How long the jobs have to finish their batches, and the pool its statements. Both have shorter limits of their own.
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

/**
 * Returns the limit for each worker. Failures are counted in memory, and the connections of an address reach all
 * workers in turn.
 */
function failuresPerWorker(workers: number): typeof failuresOfAddress {
  return { ...failuresOfAddress, points: Math.ceil(failuresOfAddress.points / workers) };
}

/**
 * Returns the maximum number of requests in progress in one cell.
 *
 * CHOICE: one cell may have half of the requests that the server admits concurrently, so that a cell that hangs leaves
 * room for the others.
 */
function maxPerCell({ admission, cells }: ServeConfig): number {
  const isLimited = admission !== undefined && cells.directoryUrl !== undefined;
  return isLimited ? Math.ceil(admission.requests / 2) : Number.POSITIVE_INFINITY;
}

/** Runs work in every cell. With several cells, those that are unavailable are left out. */
async function inEveryCell<T>(
  cells: readonly OpenCell[],
  work: (cell: OpenCell) => Promise<T>,
): Promise<T[]> {
  const results = await Promise.allSettled(cells.map(work));
  return results.flatMap((result) => {
    if (result.status === 'fulfilled') return [result.value];
    if (cells.length === 1 || !isUnavailable(result.reason)) throw result.reason;
    return [];
  });
}

/** Makes the voucher keys of apps with logins. Returns the apps that no cell has. */
async function unknownToAll(cells: readonly OpenCell[], keyStore: KeyStore): Promise<readonly string[]> {
  const unknown = await inEveryCell(cells, (cell) => cell.prepareLogins(keyStore));
  return unknown[0]?.filter((appId) => unknown.every((ids) => ids.includes(appId))) ?? [];
}
