import { createHmac } from 'node:crypto';
import { type AdjustableClock, adjustableClock, systemClock } from '../adapters/clock.ts';
import { seededEntropy, systemEntropy } from '../adapters/entropy.ts';
import { makeIds } from '../adapters/ids.ts';
import { createHttpJwks } from '../adapters/jwks-http.ts';
import {
  databaseOf,
  generateEventLogId,
  type SandboxState,
  startErrorOf,
} from '../adapters/sandbox-folder.ts';
import { sandboxVault } from '../adapters/sandbox-vault.ts';
import { anyAddress, createWebhookSender } from '../adapters/webhook-http.ts';
import { adminOperations } from '../admin/admin-operations.ts';
import { operatorContext } from '../admin/operator-context.ts';
import { policyAnalysis } from '../admin/policy-analysis.ts';
import { requireMasterKey } from '../admin/require-master-key.ts';
import { readSandboxConfig, type SandboxConfig } from '../config.ts';
import { assertBackendsAgree } from '../crypto/secp256k1.ts';
import { createAppDirectory } from '../domain/access/apps/app-directory.ts';
import { sealStoredTestCodes } from '../domain/access/apps/test-accounts.ts';
import { effectsOf } from '../domain/base/events/stored-effects.ts';
import { answerOnce } from '../domain/base/idempotency/answer-once.ts';
import { acceptOnce } from '../domain/base/used-signatures/accept-once.ts';
import { entities } from '../domain/tables.ts';
import { createUserTokens } from '../domain/wallets/tokens/verify-access-token.ts';
import { createUseLog } from '../domain/wallets/wallet-uses/use-log.ts';
import { operations } from '../generated/operations.ts';
import { registry } from '../generated/registry.ts';
import { responseValidators } from '../generated/response-validators.js';
import { createAuthenticate } from '../http/authenticate.ts';
import { injectingFaults } from '../http/inject-faults.ts';
import { isLoopbackHost, requireOwnHost } from '../http/origins/local-caller.ts';
import type { PipelineOptions } from '../http/pipeline.ts';
import { requestIdsFrom } from '../http/request-ids.ts';
import { createResponseCheck } from '../http/response-check.ts';
import { createRunOperation } from '../http/run-operation.ts';
import { inUnitOf, unitsOf } from '../http/unit-of-work.ts';
import type { Services } from '../operation-context.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import { bringDueTimesTo, LONGEST_PLAN_MS } from '../sandbox/bring-due-times.ts';
import { DEVICE_PAGE } from '../sandbox/device-page.ts';
import { createFaultRules } from '../sandbox/faults/fault-rules.ts';
import { findRequestFault } from '../sandbox/faults/request-faults.ts';
import { createRequestLog } from '../sandbox/requests/request-log.ts';
import { verifyPagePath } from '../sandbox/verify-page.ts';
import { explainRefusals } from '../sandbox/why/explain-refusal.ts';
import type { CardControls } from '../simulated/cards/issuers.ts';
import type { SimulatedChains } from '../simulated/chains/simulated-chains.ts';
import { simulatedCustodians } from '../simulated/custodians.ts';
import type { FiatControls } from '../simulated/fiat/providers.ts';
import { type Database, openDatabase } from '../storage/open-database.ts';
import { resetDatabase } from '../storage/reset-database.ts';
import { admissionFor } from './admission.ts';
import { sandboxChains } from './chains.ts';
import { controlPlane } from './control-plane.ts';
import { documentedErrors } from './documented-errors.ts';
import { openEventLog } from './event-log.ts';
import { startBesideRequests } from './jobs.ts';
import { listen } from './listen.ts';
import { certificateFor, logFor, type RunningSandbox, rateLimitFor } from './local.ts';
import { publishedSafeguards } from './safeguards.ts';
import { openMemory, type SandboxMemory } from './sandbox-memory.ts';
import { sandboxPages } from './sandbox-pages.ts';
import { sandboxReference } from './sandbox-reference.ts';
import { ensureSeeds, plantSeeds } from './seeds.ts';

/** CHOICE: the clock of a seeded sandbox stands still at this time, so that times are the same in every run. */
const seededStartMs = Date.UTC(2026, 0, 1);

/** A sandbox as seen by code in the same process. */
export interface Sandbox extends RunningSandbox {
  readonly clock: AdjustableClock;
  readonly services: Services;
  readonly chains: SimulatedChains;
  /** The simulated bank and identity office. */
  readonly fiat: FiatControls;
  /** The simulated card issuer, and the merchants. */
  readonly cards: CardControls;
  readonly database: Database;
  /** Restores the seed data, as `POST /_sandbox/reset` does. */
  reset(): Promise<void>;
  /**
   * Runs everything that is due at the current time of the clock, and waits for the responses of webhook endpoints.
   */
  settle(): Promise<void>;
}

/** What code in the same process may also set. */
export interface SandboxOptions extends Partial<SandboxConfig> {
  readonly log?: Log;
  /** The clock of the machine, by which callers are paced. */
  readonly machine?: Clock;
  /** The files of the inspector. Default: those of the build. */
  readonly inspectorFolder?: string;
}

/**
 * The owner of leases. It is the same at every start, so a restarted sandbox reclaims the leases of a killed one
 * immediately.
 */
const OWNER = 'sandbox';

/**
 * Starts a sandbox. Defaults are those of `custos sandbox`.
 *
 * @throws StartError when its folder cannot be used.
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  assertBackendsAgree();
  const config: SandboxConfig = { ...readSandboxConfig({}), ...options };
  let memory: SandboxMemory | undefined;
  try {
    memory = openMemory(config);
    const { log = logFor(config), machine = systemClock, inspectorFolder } = options;
    return await startWith(memory, config, { log, machine, inspectorFolder });
  } catch (error) {
    memory?.release();
    throw config.dataFolder === undefined ? error : startErrorOf(config.dataFolder, error);
  }
}

interface Outside {
  readonly log: Log;
  readonly machine: Clock;
  readonly inspectorFolder: string | undefined;
}

async function startWith(kept: SandboxMemory, config: SandboxConfig, outside: Outside): Promise<Sandbox> {
  const { log } = outside;
  const { state: memory } = kept;
  const certificate = await certificateFor(config);
  const world = makeServices(config, memory, outside);
  const { ports, clock, chains, fiat, cards, faults, baseUrl, listensAt, restart, newRequestId } = world;
  const file = config.dataFolder === undefined ? ':memory:' : databaseOf(config.dataFolder);
  const database = await openDatabase(entities, { kind: 'sqlite', file });
  // Secrets are rotated by commands, which know the time of the machine but not that of the sandbox.
  const apps = createAppDirectory(database.orm, systemClock);
  const units = unitsOf(database);
  const services: Services = { ...ports, uses: createUseLog({ inUnit: inUnitOf(units), log }) };
  const { jobs, openUnit } = startBesideRequests(services, units, OWNER);
  const validators = responseValidators;
  const check = createResponseCheck({ mode: 'always', validators, log });
  const idempotency = answerOnce();
  const singleUse = acceptOnce(services.safeguards);
  const admission = admissionFor(config.admission, log);
  const requests = config.record ? createRequestLog(() => generateEventLogId(systemEntropy)) : undefined;
  const stopping = new AbortController();
  const runOperation = createRunOperation({
    services,
    registry,
    openUnit,
    idempotency,
    singleUse,
    check,
    admission,
    effectsOf: requests === undefined ? undefined : effectsOf,
  });
  const run = injectingFaults(runOperation, {
    find: findRequestFault(faults, documentedErrors),
    stopping: stopping.signal,
  });

  const eventLog = openEventLog(memory, config.dataFolder, systemEntropy);
  const seeds = {
    ...{ config, appId: memory.appId, appSecret: memory.appSecret },
    ...{ services, database, chains },
  };
  const reset = async (): Promise<void> => {
    await services.uses.flush();
    await jobs.whilePaused(async () => {
      await resetDatabase(database);
      await chains.reset();
      clock.reset();
      fiat.setUp(true);
      cards.setUp(true);
      restart();
      await plantSeeds(seeds);
    });
    eventLog.restart();
    apps.noteChange();
  };
  const transport = { plainHttp: config.plainHttp, trustedProxies: [] };
  const http = { transport, clock, log, newRequestId };
  try {
    await requireMasterKey(
      database,
      services.vault,
      'restore its `sandbox.json`, or start with an empty folder',
    );
    kept.keep();
    await sealStoredTestCodes(services.vault, inUnitOf(units));
    await ensureSeeds(seeds);
    // The clock of an earlier start may have been ahead.
    const nowMs = clock.now();
    await inUnitOf(units)((em) => bringDueTimesTo(em, nowMs, nowMs + LONGEST_PLAN_MS));
    const control = await controlPlane({
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
        reset,
        jobs,
        appId: memory.appId,
      },
      eventLog,
      requests,
      ...{ faults, documentedErrors },
      baseUrl,
      stopping: stopping.signal,
    });
    const listening = await listen({
      ...http,
      config,
      run,
      authenticate: fromOwnHost(
        config,
        createAuthenticate({
          apps,
          userTokens: createUserTokens(database.orm, services),
          clock: systemClock,
        }),
      ),
      admission,
      isHostSigned: true,
      rateLimit: rateLimitFor(config),
      tls: certificate,
      record: requests?.record,
      refusals: {
        explain: explainRefusals({ prefix: config.prefix, operations: Object.values(operations) }),
        isHintSent: config.hints,
      },
      adminHost: config.host,
      adminMounts: adminOperations({
        ...{ ...http, adminHost: config.host },
        analysis: policyAnalysis({ services, database }),
        context: operatorContext({ database, openUnit, services }),
      }),
      checkReady: async () => void (await database.orm.em.fork().execute('select 1')),
      mounts: [control],
      findPage: sandboxPages({ config, inspectorFolder: outside.inspectorFolder, log }),
      reference: sandboxReference({ ...memory, config }),
    });
    listensAt(config.publicUrls[0] ?? listening.baseUrl);
    return {
      ...listening,
      appId: memory.appId,
      appSecret: memory.appSecret,
      caFile: certificate.caFile,
      caPem: certificate.ca,
      isExposed: !isLoopbackHost(config.host),
      clock,
      services,
      chains,
      fiat,
      cards,
      database,
      reset,
      settle: () => jobs.finish(),
      async close() {
        // Ends the requests that wait for events.
        stopping.abort();
        await listening.close();
        await jobs.stop();
        await services.uses.flush();
        await Promise.all([services.webhooks.close(), database.close(), chains.close()]);
        kept.release();
      },
    };
  } catch (error) {
    await jobs.stop();
    await Promise.all([database.close(), chains.close()]);
    throw error;
  }
}

/** The ports of a sandbox, and the controls that only a sandbox has. */
function makeServices(config: SandboxConfig, memory: SandboxState, { log, machine }: Outside) {
  const { entropy, requestEntropy, faultEntropy, restart } = entropyOf(config.seed, memory.starts);
  const clock = adjustableClock(config.seed === undefined ? {} : { startMs: seededStartMs, frozen: true });
  const ids = makeIds(entropy);
  const faults = createFaultRules(faultEntropy);
  // Known as soon as the server listens; links to the hosted page are only made by requests.
  let baseUrl = '';
  const pageOf = (token: string): string => baseUrl + verifyPagePath(token);
  const cardSecret = createHmac('sha256', memory.masterKeyHex).update('simulated card issuer').digest();
  const world = sandboxChains(config, { clock, log, ids, pageOf, cardSecret });
  const { chains, simulated, exchange, swapRoutes, incentives, vaultRates } = world;
  const { fiatProviders, fiatControls, cardIssuers, cardControls } = world;
  const ports: Omit<Services, 'uses'> = {
    clock,
    machine,
    devicePage: DEVICE_PAGE,
    // The seed determines ids, keys and secrets. Values that appear in no response, such as nonces of seals, are
    // always random.
    entropy,
    ids,
    vault: sandboxVault(memory.masterKeyHex),
    jwks: createHttpJwks(systemClock),
    chains,
    prices: simulated.prices,
    custodians: simulatedCustodians,
    exchange,
    incentives,
    vaultRates,
    swapRoutes,
    fiatProviders,
    cardIssuers,
    webhooks: createWebhookSender({ guard: anyAddress }),
    log,
    prefix: config.prefix,
    diagnostics: true,
    safeguards: publishedSafeguards,
  };
  let newRequestId = requestIdsFrom(requestEntropy);
  return {
    ports,
    clock,
    chains: simulated,
    fiat: fiatControls,
    baseUrl: () => baseUrl,
    cards: cardControls,
    listensAt: (url: string) => {
      baseUrl = url;
    },
    // Ids are drawn many at a time; those drawn before the restart are discarded.
    faults,
    restart: () => {
      restart();
      faults.restart();
      newRequestId = requestIdsFrom(requestEntropy);
    },
    newRequestId: () => newRequestId(),
  };
}

/** Refuses what web pages of other sites send to a sandbox that only this machine reaches. */
function fromOwnHost(
  config: SandboxConfig,
  authenticate: PipelineOptions['authenticate'],
): PipelineOptions['authenticate'] {
  if (!isLoopbackHost(config.host)) return authenticate;
  const requireHost = requireOwnHost(config);
  return (exchange) => {
    requireHost(exchange);
    return authenticate(exchange);
  };
}

/**
 * The main entropy, the one of request ids and the one of faults: each is drawn from independently, so that faults
 * change no ids.
 *
 * CHOICE: a seeded sandbox with stored data derives its entropy from the seed and the number of the start. From the
 * seed alone it would draw ids that already exist in the data.
 */
function entropyOf(seed: string | undefined, starts: number) {
  if (seed === undefined) {
    const drawn = { entropy: systemEntropy, requestEntropy: systemEntropy, faultEntropy: systemEntropy };
    return { ...drawn, restart: () => undefined };
  }
  const text = starts === 1 ? seed : `${seed}\n${starts}`;
  const [entropy, requestEntropy] = [seededEntropy(text), seededEntropy(`${text}\nrequests`)];
  const faultEntropy = seededEntropy(`${text}\nfaults`);
  const restart = (): void => {
    entropy.reset();
    requestEntropy.reset();
    faultEntropy.reset();
  };
  return { entropy, requestEntropy, faultEntropy, restart };
}
