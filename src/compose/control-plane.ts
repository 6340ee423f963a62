import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { aliceKey, bobKey, carolKey, keyNames } from '../../mocks/authorization-keys.ts';
import { policyAnalysis } from '../admin/policy-analysis.ts';
import type { SandboxConfig } from '../config/config.ts';
import { packageRoot, packageVersion } from '../config/package-root.ts';
import type { StoredAppDirectory } from '../domain/access/apps/app.ts';
import { loadOnce } from '../engine/load-once.ts';
import { bodyShapes } from '../generated/body-shapes.ts';
import { operations as apiOperations } from '../generated/operations.ts';
import { responseValidators as apiResponses } from '../generated/response-validators.js';
import { secretProperties } from '../generated/secrets.ts';
import type { ValidateFunction } from '../generated/validate-function.ts';
import type { JobRunner } from '../jobs/runner.ts';
import type { Services } from '../ports/operation-context.ts';
import type { ExplainRefusal } from '../ports/refusals.ts';
import {
  type ControlContext,
  type ControlHandler,
  type ControllableCards,
  type ControllableClock,
  type ControllableFiat,
  type ControllablePrices,
  type ControllableSnapshots,
  controlHandlers,
  type EventContract,
  type SimulatedLogin,
} from '../sandbox/control-plane.ts';
import { type ControllableChains, rpcChain } from '../sandbox/controllable-chains.ts';
import type { DocumentedErrors, FaultRules } from '../sandbox/faults/fault-rules.ts';
import { definition } from '../sandbox/generated/definition.ts';
import { type OperationId, operations } from '../sandbox/generated/operations.ts';
import { requestValidators } from '../sandbox/generated/request-validators.js';
import { responseValidators } from '../sandbox/generated/response-validators.js';
import { answerMessage } from '../sandbox/json-rpc.ts';
import type { OwnApi } from '../sandbox/requests/own-api.ts';
import { redactionFor } from '../sandbox/requests/redact.ts';
import type { RequestLog } from '../sandbox/requests/request-log.ts';
import { explainControlRefusals, explainRefusals } from '../sandbox/why/explain-refusal.ts';
import { nearestName } from '../sandbox/why/nearest.ts';
import type { Mount } from '../server/app.ts';
import { type Brand, createBrand, createControlBrand } from '../server/brand.ts';
import { requireLocalCaller } from '../server/origins.ts';
import { createPipeline, type PipelineOptions } from '../server/pipeline.ts';
import type { Answer, RequestState } from '../server/request-state.ts';
import type { RpcEndpoint } from '../server/rpc/rpc-server.ts';
import { inUnitOf, type OpenUnit } from '../server/unit-of-work.ts';
import { createResponseCheck, describeFault } from '../server/validation-issues.ts';
import type { Database } from '../storage/open-database.ts';
import { type DeclaredWorld, declaredWorld } from './declared-world.ts';
import type { RequestGate } from './request-gate.ts';
import type { EventLog } from './sandbox-memory.ts';

/** The members of the API document that are read here. */
interface WebhookDocument {
  readonly webhooks: Readonly<
    Record<string, { post: { requestBody: { content: Record<string, { examples: Examples }> } } }>
  >;
}

type Examples = Readonly<Record<string, { readonly value: unknown }>>;

/**
 * Returns the API document's rules for events, translated to `brand` for callers.
 *
 * NOTE: the validators and the document are large, so they are loaded on first use.
 */
function eventContract(brand: Pick<Brand, 'readBody' | 'writeBody'> | undefined): EventContract {
  const validators = async () => (await import('../generated/webhook-validators.js')).webhookValidators;
  let document: WebhookDocument | undefined;
  const write = (payload: unknown): unknown => (brand === undefined ? payload : brand.writeBody(payload));
  const read = (payload: unknown): unknown => (brand === undefined ? payload : brand.readBody(payload));
  const types = async () => Object.keys(await validators()).sort();
  return {
    types,
    readType: (type) => (read({ type }) as { type: string }).type,
    async unknownType(type) {
      const known = (await types()).map((name) => (write({ type: name }) as { type: string }).type);
      return describeUnknown(type, known);
    },
    async example(type) {
      document ??= JSON.parse(
        readFileSync(join(packageRoot(), 'openapi', 'openapi.json'), 'utf8'),
      ) as WebhookDocument;
      const { examples } = document.webhooks[type]!.post.requestBody.content['application/json']!;
      return write(structuredClone(Object.values(examples)[0]!.value));
    },
    read,
    write: (payload) => write(JSON.parse(payload)),
    async fault(type, payload) {
      const validate = (await validators())[type]!;
      return validate(payload) ? undefined : describeFault(validate.errors!);
    },
  };
}

/** Suggests the most similar known type, else the types with the same prefix, else where all types are listed. */
function describeUnknown(type: string, known: readonly string[]): string {
  const nearest = nearestName(type, known);
  if (nearest !== undefined) return `the contract has no event \`${type}\`: did you mean \`${nearest}\`?`;
  const meant = known.filter((name) => name.split('.')[0] === type.split('.')[0]);
  if (meant.length === 0) {
    return `the contract has no event \`${type}\`; /docs lists all ${known.length}, such as \`${known[0]}\``;
  }
  return `the contract has no event \`${type}\`, only ${meant.map((name) => `\`${name}\``).join(', ')}`;
}

interface ControlPlaneOptions extends Pick<PipelineOptions, 'transport' | 'log' | 'newRequestId'> {
  readonly config: Pick<SandboxConfig, 'host' | 'publicUrls' | 'prefix' | 'controlToken' | 'hints'>;
  /** The id of the app with which the sandbox was started. */
  readonly appId: string;
  readonly login: () => SimulatedLogin;
  readonly services: Services;
  readonly clock: ControllableClock;
  readonly chains: ControllableChains & { readonly prices: ControllablePrices };
  readonly fiat: ControllableFiat;
  readonly cards: ControllableCards;
  readonly database: Database;
  readonly openUnit: OpenUnit;
  readonly apps: StoredAppDirectory;
  readonly reset: () => Promise<void>;
  readonly snapshots: ControllableSnapshots;
  readonly gate: RequestGate;
  readonly jobs: Pick<JobRunner, 'act' | 'settle' | 'finish'>;
  readonly eventLog: EventLog;
  readonly requests: RequestLog | undefined;
  readonly faults: FaultRules;
  readonly documentedErrors: () => DocumentedErrors;
  readonly ownApi: OwnApi;
  readonly baseUrl: () => string;
  readonly clientConfig: Pick<ControlContext['clientConfig'], 'appSecret' | 'caFile' | 'rpcUrl'>;
  /** Aborted as soon as the server begins to stop. */
  readonly stopping: AbortSignal;
}

const everyOperation = Object.values(operations);
/** Returns the function that explains why the API of a sandbox refused a request. */
export function explainApiRefusals(prefix: string): ExplainRefusal {
  return explainRefusals({ prefix, operations: Object.values(apiOperations), keyNames, shapes: bodyShapes });
}

const loadBodyShapes = loadOnce(async () => (await import('../sandbox/generated/body-shapes.ts')).bodyShapes);

/**
 * Operations that do not pass the request gate: operations that wait for an event, that send requests themselves, or
 * that keep all other requests waiting.
 */
const ungated: ReadonlySet<string> = new Set<OperationId>([
  'listEvents',
  'listRequests',
  'loadSnapshot',
  'measureCoverage',
  'resetSandbox',
  'runScenario',
  'saveSnapshot',
  // The requests that they send pass the gate themselves.
  'sendRequest',
  'replayRequest',
  'signIntent',
]);

/**
 * Returns the control plane under `/_sandbox/`, which uses the pipeline of the API, and the parts of it that other
 * ports serve.
 */
export async function controlPlane(
  options: ControlPlaneOptions,
): Promise<{ readonly mount: Mount; readonly rpc: RpcEndpoint; readonly declared: DeclaredWorld }> {
  const { services, clock, chains, fiat, cards, database, apps, reset, jobs, appId, eventLog } = options;
  // A change is a unit of work like that of a request, so the same callbacks run after its commit.
  const change: ControlContext['change'] = inUnitOf(options.openUnit);
  const brand = createControlBrand(options.config.prefix);
  const context: Omit<ControlContext, 'signal'> = {
    ...policyAnalysis({ services, database }),
    by: { origin: 'control_plane' },
    clock,
    movedByRpc: { totalMs: 0, atSnapshots: new Map() },
    appId,
    events: eventContract(createBrand(options.config.prefix)),
    document: () => readDocument(brand),
    requests: options.requests,
    faults: options.faults,
    documentedErrors: options.documentedErrors,
    responseFault,
    redaction: redactionFor(secretProperties, options.config.prefix),
    ownApi: options.ownApi,
    measureCoverage: async (entries, eventCounts) =>
      (await import('./measure-coverage.ts')).measureCoverage(entries, eventCounts),
    baseUrl: options.baseUrl,
    clientConfig: {
      ...options.clientConfig,
      signers: [
        { name: 'alice', publicKey: aliceKey.publicKey },
        { name: 'bob', publicKey: bobKey.publicKey },
        { name: 'carol', publicKey: carolKey.publicKey },
      ],
    },
    version: packageVersion(),
    eventLog: () => eventLog.name(),
    eventLogBeginsAfter: () => eventLog.beginsAfter(),
    entropy: services.entropy,
    keyStore: services.keyStore,
    login: options.login,
    prefix: options.config.prefix,
    ids: services.ids,
    jwks: services.jwks,
    chains,
    fiat,
    cards,
    fiatProviders: services.fiatProviders,
    log: options.log,
    prices: chains.prices,
    reset,
    snapshots: options.snapshots,
    keyNames,
    seededKeys: {
      alice: { name: 'alice', publicKey: aliceKey.publicKey },
      bob: { name: 'bob', publicKey: bobKey.publicKey },
    },
    actJobs: (patienceMs) => jobs.act(patienceMs),
    runDueJobs: () => jobs.settle(),
    finishJobs: () => jobs.finish(),
    read: (work) => work(database.orm.em.fork()),
    change,
    async changeApps(work) {
      const changed = await change(work);
      apps.noteChange();
      return changed;
    },
  };
  const check = createResponseCheck({ mode: 'always', validators: responseValidators, log: options.log });
  const requireLocal = requireLocalCaller(options.config, options.config.controlToken);
  async function run(handler: ControlHandler, _context: unknown, state: RequestState): Promise<Answer> {
    const { operation, params } = state.route!;
    const input = { path: params, query: state.query, body: state.body };
    const signal = AbortSignal.any([options.stopping, disconnectSignal(state)]);
    const isGated = !ungated.has(operation.id);
    if (isGated) await options.gate.enter();
    let body: unknown;
    try {
      body = await handler(input, { ...context, signal });
    } finally {
      if (isGated) options.gate.leave();
    }
    check(state, operation.successStatus, body);
    return { status: operation.successStatus, body };
  }
  const handle = await createPipeline({
    ...options,
    definition,
    operations: everyOperation,
    validators: requestValidators,
    bodyShapes: loadBodyShapes,
    brand,
    authenticate: async (state) => requireLocal(state),
    publicBaseUrls: () => [],
    isHostSigned: false,
    refusals: { explain: explainControlRefusals(everyOperation), isHintSent: options.config.hints },
    // The inspector reads the clock and its lists every few seconds, and clients that listen for events poll.
    isQuiet: ({ method }) => method === 'GET',
    handlers: Object.fromEntries(
      Object.entries(controlHandlers).map(([id, handler]) => [id, run.bind(undefined, handler)]),
    ),
  });
  const rpc: RpcEndpoint = {
    chainOf: (name) => rpcChain(chains, name),
    async answer(caip2, message, sender) {
      await options.gate.enter();
      try {
        return await answerMessage(context, caip2, message, sender);
      } finally {
        options.gate.leave();
      }
    },
  };
  const declared = declaredWorld(context, {
    stopping: options.stopping,
    async readBalance(caip2, address, token) {
      const [held = 0n] = (await services.chains.find(caip2)?.balances(address, [token])) ?? [];
      return held ?? 0n;
    },
  });
  return { mount: { path: /^\/_sandbox\//, handle }, rpc, declared };
}

type ByOperation = Readonly<Record<string, Readonly<Record<string, ValidateFunction>>>>;

/** Returns how a response of an operation differs from the API document; undefined if it does not. */
const responseFault: ControlContext['responseFault'] = (operation, status, body) => {
  const validators = (apiResponses as ByOperation)[operation] ?? {};
  const validate = validators[status];
  if (validate === undefined) {
    const statuses = Object.keys(validators).join(', ');
    return { pointer: '/status', message: `expected one of ${statuses}, got \`${status}\`` };
  }
  if (validate(body)) return undefined;
  const { pointer, message } = describeFault(validate.errors ?? []);
  return { pointer: `/body${pointer}`, message };
};

function readDocument(brand: Pick<Brand, 'writeText'> | undefined): object {
  const text = readFileSync(join(packageRoot(), 'openapi', 'control-plane.json'), 'utf8');
  return JSON.parse(brand?.writeText(text) ?? text);
}

/** Returns a signal that is aborted when the connection closes before the response is written. */
function disconnectSignal({ response }: RequestState): AbortSignal {
  const disconnected = new AbortController();
  response.once('close', () => disconnected.abort());
  return disconnected.signal;
}
