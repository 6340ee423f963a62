import { keyNames } from '../../mocks/authorization-keys.ts';
import { type AdjustableClock, systemClock, systemEntropy } from '../adapters/runtime.ts';
import { databaseOf, generateEventLogId, startErrorOf } from '../adapters/sandbox-folder.ts';
import { snapshotFolder, snapshotsInMemory, snapshotsOf } from '../adapters/snapshot-folder.ts';
import { adminOperations } from '../admin/admin-operations.ts';
import { requireMasterKey } from '../admin/open-key-store.ts';
import { operatorContext } from '../admin/operator-context.ts';
import { policyAnalysis } from '../admin/policy-analysis.ts';
import { readSandboxConfig, type SandboxConfig } from '../config/config.ts';
import type { ConfigFile } from '../config/config-file.ts';
import { packageVersion } from '../config/package-root.ts';
import { createAppDirectory } from '../domain/access/apps/app.ts';
import { sealStoredTestCodes } from '../domain/access/apps/test-account-codes.ts';
import { createAuditTrail } from '../domain/base/audit/audit-log.ts';
import { idempotencyKeys } from '../domain/base/idempotency/idempotency-keys.ts';
import { singleUseSignatures } from '../domain/base/replay-protection/single-use-signatures.ts';
import { entities } from '../domain/tables.ts';
import { createUserTokens } from '../domain/wallets/tokens/access-tokens.ts';
import { createUseLog } from '../domain/wallets/wallet-uses/use-log.ts';
import { assertBackendsAgree } from '../engine/crypto/secp256k1.ts';
import { registry } from '../generated/registry.ts';
import { responseValidators } from '../generated/response-validators.js';
import type { ServerMetrics } from '../observability/server-metrics.ts';
import type { Services } from '../ports/operation-context.ts';
import type { Clock, Entropy, Log } from '../ports/runtime.ts';
import { bringDueTimesTo, LONGEST_PLAN_MS } from '../sandbox/clock.ts';
import type { ControllableSnapshots } from '../sandbox/control-plane.ts';
import { delayByRules, findRequestFault } from '../sandbox/faults/faults.ts';
import { refusedResources } from '../sandbox/names.ts';
import { createRequestLog } from '../sandbox/requests/request-log.ts';
import type { CardControls } from '../sandbox/simulated/cards/issuers.ts';
import type { SimulatedChains } from '../sandbox/simulated/chains/simulated-chains.ts';
import type { FiatControls } from '../sandbox/simulated/fiat/providers.ts';
import type { Snapshot } from '../sandbox/snapshot-file.ts';
import { admissionFor } from '../server/admission.ts';
import { recordDenials } from '../server/audit.ts';
import { createAuthenticate } from '../server/authenticate.ts';
import { faultInjector } from '../server/inject-faults.ts';
import { isLocalOrigin, isLoopbackHost } from '../server/origins.ts';
import { controlUpgrades, openRpcPort, rpcSockets } from '../server/rpc/rpc-server.ts';
import { bindHandlers } from '../server/run-operation.ts';
import { inUnitOf, unitsOf } from '../server/unit-of-work.ts';
import { createResponseCheck } from '../server/validation-issues.ts';
import { type Database, openDatabase } from '../storage/open-database.ts';
import { restoredSandbox } from './backups.ts';
import { controlPlane, explainApiRefusals } from './control-plane.ts';
import type { WorldChange } from './declared-world.ts';
import { readFundedWallets } from './funds.ts';
import { releaseOwnClaims, startBesideRequests } from './jobs.ts';
import { listen, rateLimiterFor } from './listen.ts';
import {
  createLocalLog,
  loadLocalCertificate,
  type RunningSandbox,
  rateLimitOf,
  requireOwnHostFirst,
  withControlToken,
} from './local-server.ts';
import { documentedErrors } from './measure-coverage.ts';
import { countFailures, metricsFor, watchServer } from './monitoring.ts';
import { ownApi } from './own-api.ts';
import { sandboxPages, sandboxReference } from './pages.ts';
import { createRequestGate } from './request-gate.ts';
import { openEventLog, openMemory, type SandboxMemory } from './sandbox-memory.ts';
import { makeSandboxPorts } from './sandbox-ports.ts';
import { ensureSeeds } from './seeds.ts';
import { LOAD_OPTION, namedSnapshots, restoreRequests, snapshotOf } from './snapshots.ts';
import { adopt, keepFile, wholeState } from './whole-state.ts';

/** The interface of a sandbox for code in the same process. */
export interface Sandbox extends RunningSandbox {
  readonly clock: AdjustableClock;
  readonly services: Services;
  readonly chains: SimulatedChains;
  /** Controls the simulated bank and identity office. */
  readonly fiat: FiatControls;
  /** Controls the simulated card issuer and the merchants. */
  readonly cards: CardControls;
  readonly database: Database;
  /** Resets the sandbox to the state after its start, like `POST /_sandbox/reset`. */
  reset(): Promise<void>;
  /** Applies a changed configuration file. Later resets return to it. */
  applyFile(file: ConfigFile): Promise<WorldChange>;
  readonly snapshots: ControllableSnapshots;
  /** Runs everything that is due at the clock's current time, and waits for the responses of webhook endpoints. */
  settle(): Promise<void>;
}

/** Options for code in the same process. */
export interface SandboxOptions extends Partial<SandboxConfig> {
  readonly log?: Log;
  /** The clock of the rate limits. By default, the system clock. */
  readonly machine?: Clock;
  /** The folder of the inspector. By default, the one that the build writes. */
  readonly inspectorFolder?: string;
  /** How long a reset or a snapshot waits for requests in progress. */
  readonly drainMs?: number;
  /** Whether each request that may change something moves a frozen clock by a millisecond. Default: true. */
  readonly ticks?: boolean;
  /** The snapshot to start with, in place of that of `load`. */
  readonly snapshot?: Snapshot;
}

const DRAIN_MS = 5_000;

/**
 * Starts a sandbox. The defaults are those of `custos sandbox`.
 *
 * @throws StartError if its folder cannot be used.
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  assertBackendsAgree();
  const config = withControlToken({ ...readSandboxConfig({}), ...options });
  let memory: SandboxMemory | undefined;
  try {
    const snapshot = options.snapshot ?? (await snapshotOf(config));
    memory = await openMemory(config, snapshot);
    const { log = createLocalLog(config), machine = systemClock, inspectorFolder } = options;
    const { ticks = true, drainMs = DRAIN_MS } = options;
    const metrics = await metricsFor(config.adminPort);
    return await startWith(memory, config, {
      ...{ log, machine, drainMs, inspectorFolder, snapshot, metrics, ticks },
      snapshotOption: options.snapshot === undefined ? LOAD_OPTION : '',
    });
  } catch (error) {
    memory?.release();
    throw config.dataFolder === undefined ? error : startErrorOf(config.dataFolder, error);
  }
}

/**
 * Returns a function that moves the clock before a request.
 * CHOICE: a request that may change something moves a frozen clock by a millisecond. So no two resources have the
 * same time, "newest first" is well defined, and the same sequence of requests always gets the same times.
 */
function tickingFor(clock: AdjustableClock): (method: string | undefined) => number {
  return (method) => {
    if (clock.isFrozen && method !== 'GET' && method !== 'HEAD') clock.advance(1);
    return clock.now();
  };
}

interface Outside {
  readonly log: Log;
  readonly metrics: ServerMetrics | undefined;
  readonly machine: Clock;
  readonly inspectorFolder: string | undefined;
  readonly drainMs: number;
  readonly ticks: boolean;
  /** The snapshot to start with. If there is a data folder, it already has the snapshot's content. */
  readonly snapshot: Snapshot | undefined;
  /** The option that named the snapshot, for messages. */
  readonly snapshotOption: string;
}

async function startWith(kept: SandboxMemory, config: SandboxConfig, outside: Outside): Promise<Sandbox> {
  const { log, snapshot, metrics } = outside;
  const { state: memory } = kept;
  const certificate = await loadLocalCertificate(config);
  const made = makeSandboxPorts(config, kept, outside);
  const { ports, clock, chains, fiat, cards, faults, baseUrl, listensAt, randomness } = made;
  const { newRequestId } = randomness;
  const [file, image] =
    config.dataFolder === undefined
      ? [':memory:', snapshot?.database]
      : [databaseOf(config.dataFolder), undefined];
  const onFailure = countFailures(metrics);
  const database = await openDatabase(entities, { kind: 'sqlite', file, image, onFailure });
  // Commands that rotate secrets use the system time, not the sandbox's time.
  const apps = createAppDirectory(database.orm, systemClock);
  const units = unitsOf(database, metrics?.transaction);
  const services: Services = { ...ports, uses: createUseLog({ inUnit: inUnitOf(units), log }) };
  const { trail, audit } = createAudit(config, { services, database, entropy: randomness.auditEntropy });
  if (config.dataFolder !== undefined) await releaseOwnClaims(services, units, audit);
  const delay = delayByRules(faults);
  const isKept = config.dataFolder !== undefined;
  const restores = isKept ? await restoredSandbox(services, units, config.rpc.length > 0) : undefined;
  const { jobs, openUnit } = startBesideRequests(services, units, {
    ...{ delay, audit, restores },
    observe: metrics?.job,
  });
  const check = createResponseCheck({ mode: 'always', validators: responseValidators, log });
  const idempotency = idempotencyKeys();
  const singleUse = singleUseSignatures(services.safeguards);
  const admission = admissionFor(config.admission, log);
  const cells = [{ name: 'sandbox', services, database, openUnit }];
  await watchServer(metrics, { services, admission, chains: config.rpc, cells: () => cells });
  const requests = config.record ? createRequestLog(() => generateEventLogId(systemEntropy)) : undefined;
  restoreRequests(requests, snapshot, outside.snapshotOption);
  const own = ownApi({ ...memory, prefix: config.prefix, ca: certificate.ca, entropy: systemEntropy });
  const stopping = new AbortController();
  const authenticate = requireOwnHostFirst(
    config,
    createAuthenticate({
      ...{ apps, userTokens: createUserTokens(database.orm, services), clock: systemClock },
      // CHOICE: a sandbox's app without listed origins accepts pages from this machine, so that they need no setup.
      admitsUnlisted: isLocalOrigin,
    }),
  );
  const gate = createRequestGate(outside.drainMs);
  const handlers = bindHandlers(registry, {
    services,
    openUnit,
    gate,
    authenticate,
    idempotency,
    singleUse,
    check,
    admission,
    audit,
    freeze: restores?.freeze,
    notesEffects: requests !== undefined,
  });
  const injectFault = faultInjector({
    find: findRequestFault(faults, documentedErrors),
    ...{ isSpared: (request) => !own.isRecorded(request), stopping: stopping.signal },
  });

  const eventLog = openEventLog(kept, systemEntropy);
  const seeds = {
    ...{ config, appId: memory.appId, appSecret: memory.appSecret },
    ...{ services, database, chains, randomness, login: made.login },
  };
  const transport = { plainHttp: config.plainHttp, trustedProxies: [] };
  const http = { transport, clock, log, newRequestId };
  try {
    const advice = 'restore its `sandbox.json`, or start with an empty folder';
    await requireMasterKey(database, services.keyStore, advice);
    kept.keep();
    await trail.open();
    await sealStoredTestCodes(services.keyStore, inUnitOf(units));
    if (snapshot !== undefined) adopt({ clock, randomness, fiat, cards }, snapshot.state);
    // The jobs must not report the funds of the seed data as deposits.
    const isNew = await jobs.whilePaused(() => ensureSeeds(seeds), { mustForget: false });
    // The clock of an earlier start may have been ahead of the current one.
    const nowMs = clock.now();
    await inUnitOf(units)((em) => bringDueTimesTo(em, nowMs, nowMs + LONGEST_PLAN_MS));
    const { dataFolder } = config;
    const whole = await wholeState(
      {
        ...{
          dataFolder,
          version: packageVersion(),
          memory: kept,
          database,
          chains,
          keyStore: made.keyStore,
          clock,
        },
        ...{
          machine: outside.machine,
          randomness,
          fiat,
          cards,
          uses: services.uses,
          apps,
          trail,
          eventLog,
          seeds,
        },
        ...{ jobs, gate, faults },
      },
      isNew || snapshot !== undefined,
    );
    const store = dataFolder === undefined ? snapshotsInMemory() : snapshotFolder(snapshotsOf(dataFolder));
    const snapshots = namedSnapshots({ store, whole, appId: memory.appId });
    let rpcPort: { readonly url: string; close(): Promise<void> } | undefined;
    const rpcUrl = (): string => rpcPort?.url ?? `${baseUrl()}/_sandbox/rpc`;
    const file = keepFile(config.file, { whole, isLoaded: snapshot !== undefined });
    const { mount, rpc, declared } = await controlPlane({
      ...http,
      ...{
        config,
        services,
        clock,
        chains,
        fiat,
        cards,
        database,
        openUnit,
        apps,
        reset: file.reset,
        snapshots,
        gate,
        jobs,
        appId: memory.appId,
        login: made.login,
      },
      eventLog,
      requests,
      ...{ faults, documentedErrors, ownApi: own },
      baseUrl,
      clientConfig: { appSecret: memory.appSecret, caFile: certificate.caFile, rpcUrl },
      stopping: stopping.signal,
    });
    const rpcOptions = { endpoint: rpc, log, newRequestId, stopping: stopping.signal };
    const sockets = rpcSockets(rpcOptions);
    if (config.rpcPort !== undefined) rpcPort = await openRpcPort(config.rpcPort, sockets, rpcOptions);
    const analysis = () => policyAnalysis({ services, database });
    const listening = await listen({
      ...http,
      upgrade: controlUpgrades(sockets, {
        ...{ endpoint: rpc, config, transport, path: /^\/_sandbox\/rpc\/([^/?]+)$/ },
      }),
      config,
      handlers,
      injectFault,
      recordDenial: audit && recordDenials({ audit, openUnit, machine: outside.machine }),
      authenticate,
      admission,
      isHostSigned: true,
      timeOf: outside.ticks ? tickingFor(clock) : undefined,
      rateLimiter: await rateLimiterFor(rateLimitOf(config), metrics),
      tls: certificate,
      record: requests && ((answered) => own.isRecorded(answered) && requests.record(answered)),
      refusals: {
        explain: explainApiRefusals(config.prefix),
        isHintSent: config.hints,
        resources: (refused) =>
          refusedResources(database.orm.em.fork(), refused, { analysis: analysis(), keyNames }),
      },
      metrics,
      adminHost: config.host,
      adminMounts: adminOperations({
        ...{ ...http, adminHost: config.host, hasCells: false },
        parts: () => ({ analysis: analysis(), context: operatorContext({ database, openUnit, services }) }),
      }),
      checkReady: async () => {
        file.requireSetUp();
        await database.orm.em.fork().execute('select 1');
      },
      mounts: [mount],
      findPage: sandboxPages({
        ...{ config, inspectorFolder: outside.inspectorFolder, caPem: certificate.ca, log },
      }),
      reference: sandboxReference({ ...memory, baseUrl, caFile: certificate.caFile, config, database }),
    });
    own.listensAt(listening.baseUrl);
    listensAt(config.publicUrls[0] ?? listening.baseUrl);
    const running: Sandbox = {
      ...listening,
      appId: memory.appId,
      appSecret: memory.appSecret,
      caFile: certificate.caFile,
      caPem: certificate.ca,
      controlToken: config.controlToken,
      isExposed: !isLoopbackHost(config.host),
      rpcUrl: rpcUrl(),
      clock,
      fundedWallets: config.seedData && config.funds ? () => readFundedWallets(seeds) : undefined,
      services,
      chains,
      fiat,
      cards,
      database,
      reset: file.reset,
      applyFile: file.apply,
      snapshots,
      settle: () => jobs.finish(),
      async close() {
        // This ends requests that wait for events.
        stopping.abort();
        own.close();
        await Promise.all([listening.close(), rpcPort?.close()]);
        await jobs.stop();
        await services.uses.flush();
        made.keyStore.close();
        await Promise.all([services.webhooks.close(), database.close(), chains.close()]);
        kept.release();
      },
    };
    return await file.setUp(declared, running);
  } catch (error) {
    await jobs.stop();
    made.keyStore.close();
    await Promise.all([database.close(), chains.close()]);
    throw error;
  }
}

/** Creates the audit log of a sandbox: its keys, and the log of requests if they are recorded. */
function createAudit(
  { audit }: Pick<SandboxConfig, 'audit'>,
  {
    services: { keyStore },
    database,
    entropy,
  }: {
    readonly services: Pick<Services, 'keyStore'>;
    readonly database: Database;
    readonly entropy: Entropy;
  },
) {
  const reader = () => database.orm.em.fork();
  const trail = createAuditTrail({ ...{ keyStore, entropy, reader }, inUnit: inUnitOf(unitsOf(database)) });
  return { trail, audit: audit ? trail : undefined };
}
