import { makeIds, seededEntropy } from '../../src/adapters/runtime.ts';
import { jobsOf, releaseOwnClaims } from '../../src/compose/jobs.ts';
import { ensureSeeds } from '../../src/compose/seeds.ts';
import { createAppDirectory } from '../../src/domain/access/apps/app.ts';
import { createAuditTrail } from '../../src/domain/base/audit/audit-log.ts';
import { idempotencyKeys } from '../../src/domain/base/idempotency/idempotency-keys.ts';
import { singleUseSignatures } from '../../src/domain/base/replay-protection/single-use-signatures.ts';
import { publishedSafeguards } from '../../src/domain/base/safeguards/safeguards.ts';
import { entities } from '../../src/domain/tables.ts';
import { createUserTokens } from '../../src/domain/wallets/tokens/access-tokens.ts';
import { createUseLog } from '../../src/domain/wallets/wallet-uses/use-log.ts';
import { definition } from '../../src/generated/definition.ts';
import { operations } from '../../src/generated/operations.ts';
import { registry } from '../../src/generated/registry.ts';
import { requestValidators } from '../../src/generated/request-validators.js';
import { responseValidators } from '../../src/generated/response-validators.js';
import { type Heartbeat, heartbeat } from '../../src/jobs/heartbeat.ts';
import type { Job } from '../../src/jobs/runner.ts';
import { createKeyStore } from '../../src/keys/key-operations.ts';
import { localMasterKey } from '../../src/keys/master-keys.ts';
import type { Services } from '../../src/ports/operation-context.ts';
import type { Log } from '../../src/ports/runtime.ts';
import { simulatedCustodians } from '../../src/sandbox/simulated/custodians.ts';
import { createLoginIssuer } from '../../src/sandbox/simulated/login-issuer.ts';
import { recordDenials } from '../../src/server/audit.ts';
import { createAuthenticate } from '../../src/server/authenticate.ts';
import { createPipeline, type Pipeline } from '../../src/server/pipeline.ts';
import { bindHandlers } from '../../src/server/run-operation.ts';
import { requestIdsFrom } from '../../src/server/transport-guards.ts';
import { inUnitOf, type OpenUnit, unitsOf } from '../../src/server/unit-of-work.ts';
import { createResponseCheck, refuseNulCharacters } from '../../src/server/validation-issues.ts';
import { type Database, openDatabase } from '../../src/storage/open-database.ts';
import type { Disk } from './disk.ts';
import type { Outside } from './outside.ts';
import type { Life, Scheduler } from './scheduler.ts';

export const appId = 'simulated';
export const appSecret = 'secret of the simulation';
export const baseUrl = 'https://custos.test';

/** One array, because the index of routes is kept by it. */
const everyOperation = Object.values(operations);

/** One process of the server. */
export interface Server {
  readonly life: Life;
  readonly handle: Pipeline;
  readonly jobs: readonly Job[];
  readonly services: Services;
  readonly database: Database;
}

interface ServerOptions {
  readonly seed: string;
  /** Which start on this disk it is. */
  readonly start: number;
  /** Identifies the process in leases: always the same, as in a sandbox, or its own, as in production. */
  readonly owner: 'sandbox' | `process ${number}`;
  readonly disk: Disk;
  readonly outside: Outside;
  readonly scheduler: Scheduler;
  readonly clock: { nowMs: number };
  readonly log: Log;
  onCrash(): void;
  /** Makes an idle job due. */
  wakeSoon(job: string): void;
}

/**
 * Beats wait at gates as well: flows of a task that one beat lets continue would otherwise run beside the transaction of
 * the next. Each may be a beat of another task.
 */
function aliveAmongTasks(
  services: Services,
  { scheduler, units }: { readonly scheduler: Scheduler; readonly units: OpenUnit },
): Heartbeat {
  const alive = heartbeat({ services, inUnit: inUnitOf(units) });
  return {
    ...alive,
    run: (again) => scheduler.await(alive.run(again)),
    confirm: () => scheduler.await(alive.confirm()),
  };
}

/** Composes a server as a sandbox is composed, without sockets and timers: the simulation gives it requests and runs its jobs. */
export async function startServer(options: ServerOptions): Promise<Server> {
  const { seed, start, disk, outside, scheduler, log } = options;
  const life: Life = { isOver: false };
  const openHandle = () => {
    const onCrash = (): void => {
      life.isOver = true;
      options.onCrash();
    };
    return disk.open(life, onCrash);
  };
  const database = await openDatabase(entities, { kind: 'sqlite', file: ':memory:', openHandle });
  const openUnit = unitsOf(database);
  const units: OpenUnit = async (write) => {
    await scheduler.gate(write ? 'transaction' : 'reading', life);
    return openUnit(write);
  };
  const clock = { now: () => options.clock.nowMs };
  const entropy = seededEntropy(`${seed}\nstart ${start}`);
  const keyStoreEntropy = seededEntropy(`${seed}\nvault ${start}`);
  const services: Services = {
    ...{ processId: options.owner, clock, machine: clock, entropy, ids: makeIds(entropy), log },
    keyStore: {
      ...createKeyStore({
        masterKeys: [localMasterKey('local', Buffer.alloc(32, 7), keyStoreEntropy)],
        entropy: keyStoreEntropy,
        keyEntropy: entropy,
      }),
      // Every other start asks it as if it were elsewhere.
      isLocal: start % 2 === 1,
    },
    jwks: { keys: async () => [] },
    prices: outside.simulated.prices,
    custodians: simulatedCustodians,
    incentives: outside.incentives,
    vaultRates: outside.vaultRates,
    swapRoutes: outside.swapRoutes,
    ...outside.portsFor(life),
    uses: createUseLog({ inUnit: inUnitOf(units), log }),
    prefix: 'service',
    diagnostics: true,
    safeguards: publishedSafeguards,
  };
  await ensureSeeds({
    ...{ config: { seedData: false, funds: false, jwtPublicKeyPem: undefined }, appId, appSecret },
    ...{ services, database, chains: outside.simulated },
    randomness: { apart: (_, work) => work() },
    login: () => createLoginIssuer(seededEntropy('login').bytes(48)),
  });
  const isAlone = options.owner === 'sandbox';
  const inUnit = inUnitOf(openUnit);
  const audit = createAuditTrail({
    ...{ keyStore: services.keyStore, entropy: seededEntropy(`${seed}\naudit ${start}`), inUnit },
    reader: () => database.orm.em.fork(),
  });
  await audit.open();
  if (isAlone) await releaseOwnClaims(services, openUnit, audit);
  const alive = isAlone ? undefined : aliveAmongTasks(services, { scheduler, units });
  const apps = createAppDirectory(database.orm, clock);
  const handlers = bindHandlers(registry, {
    services,
    openUnit: units,
    idempotency: idempotencyKeys(),
    singleUse: singleUseSignatures(services.safeguards),
    audit,
    check: createResponseCheck({ mode: 'always', validators: responseValidators, log }),
  });
  const handle = await createPipeline({
    definition,
    operations: everyOperation,
    validators: requestValidators,
    checkInput: refuseNulCharacters,
    handlers,
    recordDenial: recordDenials({ audit, openUnit: units, machine: clock }),
    authenticate: createAuthenticate({ apps, userTokens: createUserTokens(database.orm, services), clock }),
    transport: { plainHttp: false, trustedProxies: [] },
    isHostSigned: true,
    publicBaseUrls: () => [baseUrl],
    newRequestId: requestIdsFrom(seededEntropy(`${seed}\nrequests ${start}`)),
    ...{ clock, log },
  });
  return {
    life,
    handle,
    jobs: [
      ...jobsOf(services, units, { alive, audit, wakeSoon: options.wakeSoon }),
      ...(alive === undefined ? [] : [alive]),
    ],
    services,
    database,
  };
}
