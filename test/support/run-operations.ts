import { createPrivateKey, randomUUID, sign } from 'node:crypto';
import { silentLog } from '../../src/adapters/log.ts';
import {
  noCardIssuers,
  noChains,
  noCustodians,
  noFiatProviders,
  noPrices,
} from '../../src/adapters/outside-services.ts';
import { makeIds, seededEntropy, systemEntropy } from '../../src/adapters/runtime.ts';
import { createApp } from '../../src/domain/access/apps/app.ts';
import { makeVoucherKeys } from '../../src/domain/access/key-quorums/voucher-keys.ts';
import { idempotencyKeys } from '../../src/domain/base/idempotency/idempotency-keys.ts';
import { singleUseSignatures } from '../../src/domain/base/replay-protection/single-use-signatures.ts';
import { publishedSafeguards } from '../../src/domain/base/safeguards/safeguards.ts';
import { entities } from '../../src/domain/tables.ts';
import { createUseLog } from '../../src/domain/wallets/wallet-uses/use-log.ts';
import { knownChains } from '../../src/engine/assets/known-chains.ts';
import { canonicalPayloads } from '../../src/engine/authorization/request-signatures.ts';
import type { ConfiguredCeilings } from '../../src/engine/authorization/requested/requested-fees.ts';
import { ApiError } from '../../src/errors.ts';
import { type OperationId, type Operations, operations } from '../../src/generated/operations.ts';
import { registry } from '../../src/generated/registry.ts';
import { responseValidators } from '../../src/generated/response-validators.js';
import type { Job } from '../../src/jobs/runner.ts';
import { createKeyStore } from '../../src/keys/key-operations.ts';
import { localMasterKey } from '../../src/keys/master-keys.ts';
import type { UserLogin } from '../../src/keys/voucher-operations.ts';
import type { Chains } from '../../src/ports/chains.ts';
import type { KeyStore } from '../../src/ports/key-store.ts';
import {
  createNotes,
  type OperationContext,
  type ProposedRequest,
  type Services,
} from '../../src/ports/operation-context.ts';
import type { JwksSource, Safeguards } from '../../src/ports/requests.ts';
import {
  DISTRIBUTOR_ADDRESS,
  SWAP_ROUTER_ADDRESS,
  wrappedNativeOn,
} from '../../src/sandbox/simulated/chains/evm/contracts/addresses.ts';
import { refusalBody } from '../../src/server/error-response.ts';
import { createKeyedMutex } from '../../src/server/keyed-mutex.ts';
import type { RequestState } from '../../src/server/request-state.ts';
import type { RunOptions } from '../../src/server/run-operation.ts';
import { inUnitOf, unitsOf } from '../../src/server/unit-of-work.ts';
import { createResponseCheck } from '../../src/server/validation-issues.ts';
import { openDatabase } from '../../src/storage/open-database.ts';
import { recordAnswer } from '../ledger/record-answers.ts';
import { afterCommitOf } from './after-commit.ts';
import { type DatabaseKind, openTestDatabase, type TestDatabase } from './databases.ts';
import { noWebhooks } from './no-webhooks.ts';
import { askedWithoutConnection, withOneConnection } from './one-connection.ts';
import { runnerOf } from './run-handlers.ts';
import { unsignedProof } from './unsigned-proof.ts';

/** The operations of one app on a separate database, called without HTTP. */
export interface TestOperations extends AsyncDisposable {
  readonly database: TestDatabase;
  readonly services: Services;
  readonly app: { readonly id: string; readonly name: string };
  /** The time in Unix ms. It is frozen until a test changes it. */
  readonly clock: { nowMs: number };
  /** The same app, as if another process served it: separate connections to the same PostgreSQL. */
  anotherProcess(): Promise<TestOperations>;
  /** Runs an operation. The path, query and body are validated already, as the pipeline passes them. */
  run<Id extends OperationId>(id: Id, input: RunInput): Promise<RunAnswer<Id>>;
  /** Makes a context outside of any request, over `em`. */
  context(em: OperationContext['em']): OperationContext;
}

export interface RunInput {
  readonly path?: Record<string, string>;
  readonly query?: Record<string, unknown>;
  readonly body?: unknown;
  /** Private P-256 keys (base64 PKCS#8) that sign the request. */
  readonly signWith?: readonly string[];
  /** Private keys that sign the request for another host name of the server. */
  readonly signElsewhereWith?: readonly string[];
  /** The signed text. Default: the canonical payload of the request, without its idempotency key. */
  readonly payload?: string;
  /** The expiry in Unix ms. */
  readonly expiryMs?: number;
  readonly idempotencyKey?: string;
  /** The user and the session of the access token in the request, which replaces the app secret. */
  readonly as?: { readonly userId: string; readonly sessionId: string };
  /** The network address of an OAuth client without a secret, which sends the request instead of the app. */
  readonly publicClientNetwork?: string;
}

export interface OperationsOptions {
  readonly chains?: Chains;
  readonly jwks?: JwksSource;
  readonly safeguards?: Partial<Safeguards>;
  /** The maximum number of PostgreSQL connections. */
  readonly poolSize?: number;
  readonly admission?: RunOptions['admission'];
  /** How long requests for the same wallet wait for one another. */
  readonly mutexWaitMs?: number;
  /** Wraps the key store. By default, it is local on SQLite, as in a sandbox, and separate on PostgreSQL. */
  readonly replaceKeyStore?: (keyStore: KeyStore) => KeyStore;
  /** Replaces the default ceilings of fees in the key store. */
  readonly feeCeilings?: ConfiguredCeilings;
  /**
   * Whether the key store signs deposits for a request, as in a sandbox. It then does not compare the transactions
   * that the server builds.
   */
  readonly hasExchange?: boolean;
  /** The same setting as that of the key store. */
  readonly signaturesPerRequest?: number;
  /** The app's own login, whose tokens the key store verifies. */
  readonly login?: UserLogin;
  /** The file of SQLite. By default, it is in memory. */
  readonly file?: string;
}

type RunAnswer<Id extends OperationId> =
  | { readonly status: 200 | 204; readonly body: Operations[Id]['response'] }
  | {
      readonly status: 400 | 401 | 403 | 404 | 409 | 429 | 503;
      readonly body: ReturnType<ApiError['toBody']>;
    };

function expiryHeader(expiryMs: number | undefined): Record<string, string> {
  return expiryMs === undefined ? {} : { 'service-request-expiry': String(expiryMs) };
}

/** A proof with signatures over a few payloads. Other tests cover how requests are signed. */
function signedProof(signed: readonly { readonly by: readonly string[]; readonly text: Uint8Array }[]) {
  const signatures = signed.flatMap(({ by, text }) =>
    by.map((privateKey) => {
      const key = createPrivateKey({ key: Buffer.from(privateKey, 'base64'), format: 'der', type: 'pkcs8' });
      return sign('sha256', text, key).toString('base64');
    }),
  );
  return { signatures, canonicalPayloads: () => signed.map(({ text }) => text) };
}

/** The initial time. Ids and keys are seeded. */
const startMs = Date.UTC(2026, 0, 1);

/**
 * Creates an empty app on an empty database, with the real transactions, retries and response check of the pipeline.
 */
export async function openOperations(
  kind: DatabaseKind,
  options: OperationsOptions = {},
): Promise<TestOperations> {
  const database = await openTestDatabase(kind, options);
  const clock = { nowMs: startMs };
  const logins = new Map<string, UserLogin>();
  const services = makeServices({ database, clock }, 'test', { ...options, logins });
  const { app } = await database.orm.em
    .fork()
    .transactional((em) =>
      createApp({ ...services, em: em as OperationContext['em'], nowMs: clock.nowMs }, { name: 'Acme' }),
    );
  if (options.login !== undefined) {
    logins.set(app.id, options.login);
    const { ids, keyStore } = services;
    await database.orm.em
      .fork()
      .transactional((em) => makeVoucherKeys({ em: em as OperationContext['em'], ids, keyStore }));
  }
  return serve({ database, services, clock, app, options });
}

/** Makes the operations of an app that already exists in a database. */
export function operationsOn(
  database: TestDatabase,
  { app, nowMs, keyStore }: { app: TestOperations['app']; nowMs: number; keyStore: KeyStore },
): TestOperations {
  const clock = { nowMs };
  const services = {
    ...makeServices({ database, clock }, 'operations on a database', {}),
    keyStore,
    // Signatures here do not cover a request that could be explained.
    diagnostics: false,
  };
  return serve({ database, services, clock, app, options: {} });
}

/** The chains that an operator would configure in a signer. */
const evmChains = [true, false].flatMap((isTestnet) =>
  knownChains({ isTestnet, chainType: 'ethereum' }).map(({ caip2 }) => caip2),
);
const contractsOfSimulatedChains = {
  swapRouters: new Map(
    evmChains.map((caip2) => [caip2, { router: SWAP_ROUTER_ADDRESS, wrapped: wrappedNativeOn(caip2) }]),
  ),
  rewardDistributors: new Map(evmChains.map((caip2) => [caip2, DISTRIBUTOR_ADDRESS])),
};

function makeServices(
  { database, clock }: Pick<Served, 'database' | 'clock'>,
  seed: string,
  {
    chains,
    jwks,
    safeguards,
    replaceKeyStore,
    logins,
    feeCeilings = new Map(),
    hasExchange = false,
    signaturesPerRequest,
  }: OperationsOptions & { logins?: Map<string, UserLogin> },
): Services {
  const entropy = seededEntropy(seed);
  const keyStore = createKeyStore({
    masterKeys: [localMasterKey('test', Buffer.alloc(32, 7), systemEntropy)],
    entropy: systemEntropy,
    keyEntropy: entropy,
    clock: { now: () => clock.nowMs },
    logins,
    building: hasExchange ? undefined : { feeCeilings, ...contractsOfSimulatedChains },
    signaturesPerRequest,
  });
  return {
    processId: 'test',
    clock: { now: () => clock.nowMs },
    machine: { now: () => clock.nowMs },
    entropy,
    ids: makeIds(entropy),
    keyStore:
      replaceKeyStore === undefined && database.kind === 'sqlite'
        ? Object.assign(keyStore, { isLocal: true })
        : askedWithoutConnection(replaceKeyStore?.(keyStore) ?? keyStore),
    log: silentLog,
    jwks: jwks ?? { keys: async () => [] },
    chains: chains ?? noChains,
    prices: noPrices,
    custodians: noCustodians,
    fiatProviders: noFiatProviders,
    cardIssuers: noCardIssuers,
    uses: createUseLog({ inUnit: inUnitOf(unitsOf(database)), log: silentLog }),
    diagnostics: true,
    safeguards: { ...publishedSafeguards, ...safeguards },
    prefix: 'service',
    webhooks: noWebhooks,
  };
}

interface Served extends Pick<TestOperations, 'database' | 'services' | 'app' | 'clock'> {
  readonly options: OperationsOptions;
}

function serve({ database, services, clock, app, options }: Served): TestOperations {
  const runOperation = runnerOf(registry, {
    services,
    openUnit: unitsOf(database),
    idempotency: idempotencyKeys(),
    singleUse: singleUseSignatures(services.safeguards),
    admission: options.admission,
    mutex: createKeyedMutex(options.mutexWaitMs),
    check: createResponseCheck({ mode: 'always', validators: responseValidators, log: silentLog }),
  });
  const proof = unsignedProof;

  return {
    database,
    services,
    app,
    clock,
    async anotherProcess() {
      const { url } = database;
      if (url === undefined) throw new Error('SQLite in memory has one process');
      const other = await openDatabase(entities, { kind: 'postgres', url, poolSize: 8 });
      const itsDatabase = { ...other, url, [Symbol.asyncDispose]: () => other.close() };
      return serve({
        database: itsDatabase,
        services: makeServices({ database: itsDatabase, clock }, 'another process', options),
        clock,
        app,
        options,
      });
    },
    async run(
      id,
      { path = {}, query = {}, body, signWith = [], signElsewhereWith = [], payload, expiryMs, ...rest },
    ) {
      const { idempotencyKey, as, publicClientNetwork } = rest;
      const { method, path: template } = operations[id];
      const signedText = (host = 'api'): Uint8Array => {
        if (payload !== undefined) return new TextEncoder().encode(payload);
        const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => path[name] ?? '');
        const headers = { 'service-app-id': app.id, ...expiryHeader(expiryMs) };
        return canonicalPayloads({
          method,
          urls: [`https://${host}.acme.example${filled}`],
          body,
          headers,
        })[0]!;
      };
      const signed = [
        ...(signWith.length === 0 ? [] : [{ by: signWith, text: signedText() }]),
        ...(signElsewhereWith.length === 0 ? [] : [{ by: signElsewhereWith, text: signedText('wallets') }]),
      ];
      const state = {
        id: randomUUID(),
        response: { destroyed: false },
        method,
        headers: idempotencyKey === undefined ? {} : { 'service-idempotency-key': idempotencyKey },
        nowMs: clock.nowMs,
        route: { operation: operations[id], params: path },
        app,
        query,
        body,
        rawBody: Buffer.from(JSON.stringify(body ?? null)),
        proof: {
          ...proof,
          // A body with half a surrogate pair has no canonical payload, so it cannot be signed.
          ...(signed.length === 0 ? {} : signedProof(signed)),
          expiryMs,
          ...as,
          publicClientNetwork,
          payloadsOf: ({ method, url, body: proposed, expiryMs: expiry }: ProposedRequest) =>
            canonicalPayloads({
              ...{ method, urls: [url], body: proposed },
              headers: { 'service-app-id': app.id, ...expiryHeader(expiry) },
            }),
        },
      } as unknown as RequestState;
      try {
        const { status, text } = await withOneConnection(id, () => runOperation(state));
        const answered: unknown = text === undefined ? undefined : JSON.parse(text);
        recordAnswer(id, status, answered);
        return { status, body: answered } as RunAnswer<typeof id>;
      } catch (error) {
        if (!(error instanceof ApiError) || error.code === 'internal_error') throw error;
        const refused = refusalBody(error, state);
        recordAnswer(id, error.status, refused);
        return { status: error.status, body: refused } as RunAnswer<typeof id>;
      }
    },
    context: (em) => ({
      ...services,
      em,
      notes: createNotes(),
      app,
      nowMs: clock.nowMs,
      requestId: 'test',
      proof,
      ...afterCommitOf(database),
    }),
    async [Symbol.asyncDispose]() {
      // Records may still wait to be stored.
      await services.uses.flush();
      await database[Symbol.asyncDispose]();
    },
  };
}

/** Runs one batch of a job, and what continues after it: on a busy machine a batch does not wait for its work. */
export async function runOnce(job: Job): Promise<void> {
  await job.run(() => undefined);
  await job.stop?.();
}

/** Runs a job until nothing is due. */
export async function runToEnd(job: Job): Promise<void> {
  while (await job.run(() => undefined));
  await job.stop?.();
}
