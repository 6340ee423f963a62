import { systemClock } from '../adapters/runtime.ts';
import {
  includesRole,
  type OperatorCaller,
  type OperatorRole,
  recordCall,
  recordWrongSecret,
  requireInForce,
} from '../domain/access/operators/operator.ts';
import { loadOnce } from '../engine/load-once.ts';
import { ApiError } from '../errors.ts';
import type { OperatorContext, PolicyAnalysis } from '../sandbox/control-plane.ts';
import type { Mount } from '../server/app.ts';
import { createDenialBudget } from '../server/audit.ts';
import { requireLocalCaller } from '../server/origins.ts';
import { createPipeline, type PipelineOptions } from '../server/pipeline.ts';
import type { Answer, RequestState } from '../server/request-state.ts';
import { createResponseCheck, refuseNulCharacters } from '../server/validation-issues.ts';
import { identifyOperator } from './operator-context.ts';

/** The parts of a server, or of one of its cells, on which operators act. */
interface OperatedParts {
  readonly analysis: PolicyAnalysis;
  readonly context: Omit<OperatorContext, 'by'>;
}

interface AdminOperationsOptions extends Pick<PipelineOptions, 'log' | 'newRequestId' | 'clock'> {
  readonly adminHost: string;
  /** Whether the paths begin with `/cells/` and the name of a cell. */
  readonly hasCells: boolean;
  /**
   * @param cell the name in the path; empty without cells.
   * @throws ApiError for a cell that does not exist or is unavailable.
   */
  readonly parts: (cell: string) => OperatedParts;
}

/** The operations of the control plane that production offers as well, and the role that each of them needs. */
const roleNeeded = {
  lintPolicy: 'viewer',
  getPolicyTrace: 'viewer',
  explainPolicy: 'developer',
  replayPolicy: 'developer',
  restoreWallet: 'admin',
  takeOverUser: 'admin',
  listOperators: 'viewer',
  listOperatorRecords: 'viewer',
  addOperator: 'admin',
  changeOperatorRole: 'admin',
  removeOperator: 'admin',
} as const satisfies Record<string, OperatorRole>;

type AdminOperation = keyof typeof roleNeeded;

/** The operations that write their own audit record, in the transaction of their change. */
const changes: ReadonlySet<string> = new Set<AdminOperation>([
  'restoreWallet',
  'takeOverUser',
  'addOperator',
  'changeOperatorRole',
  'removeOperator',
]);

/**
 * Returns the mounts of the operations under `/policies/`, `/wallets/`, `/users/` and `/apps/` of the admin port. The
 * operations are loaded on the first request.
 *
 * CHOICE: only local callers are accepted, even if the metrics are public, because responses contain what apps have
 * signed. Until the server has its first operator, callers need no credential.
 */
export function adminOperations(options: AdminOperationsOptions): Mount[] {
  const loaded = new Map<string, () => Promise<Mount['handle']>>();
  const handlerOf = (cell: string): Promise<Mount['handle']> => {
    const parts = options.parts(cell);
    const load = loaded.get(cell) ?? loadOnce(() => loadPipeline(options, parts));
    loaded.set(cell, load);
    return load();
  };
  return [
    {
      path: options.hasCells ? pathsOfCells : paths,
      async handle(request, response) {
        const { url = '' } = request;
        const [cell, path] = options.hasCells ? splitCell(url) : ['', url];
        const handle = await handlerOf(cell);
        request.url = `/_sandbox${path}`;
        return handle(request, response);
      },
    },
  ];
}

const paths = /^\/(?:policies|wallets|users|apps)\//;
const pathsOfCells = /^\/cells\/[^/]+\/(?:policies|wallets|users|apps)\//;

/** Splits `/cells/eu-1/wallets/…` into `eu-1` and `/wallets/…`. */
function splitCell(url: string): [cell: string, path: string] {
  const rest = url.slice('/cells/'.length);
  const slash = rest.indexOf('/');
  return [rest.slice(0, slash), rest.slice(slash)];
}

async function loadPipeline(
  { adminHost, log, newRequestId, clock }: AdminOperationsOptions,
  { analysis, context }: OperatedParts,
): Promise<Mount['handle']> {
  const http = { log, newRequestId, clock };
  const [
    { definition },
    { operations },
    { requestValidators: validators },
    { responseValidators },
    handlers,
  ] = await Promise.all([
    import('../sandbox/generated/definition.ts'),
    import('../sandbox/generated/operations.ts'),
    import('../sandbox/generated/request-validators.js'),
    import('../sandbox/generated/response-validators.js'),
    loadHandlers(),
  ]);
  const check = createResponseCheck({ mode: 'always', validators: responseValidators, log: http.log });
  const requireLocal = requireLocalCaller({ host: adminHost, publicUrls: [] });
  const callers = new WeakMap<RequestState, OperatorCaller>();
  const record = async (state: RequestState, by: OperatorCaller, result: string): Promise<void> => {
    const call = { action: state.route!.operation.id, targets: targetsOf(state), result };
    http.log.info({ request_id: state.id, operator: by.operator?.id, ...call }, 'operator');
    if (result === 'done' && changes.has(call.action)) return;
    await context.change((em, notes) => recordCall({ em, notes, nowMs: state.nowMs, by }, call));
  };
  const budget = createDenialBudget(systemClock);
  /**
   * Refuses a caller who is not an operator. The audit log records only wrong secrets: a request without a secret is
   * not an attempt to guess one.
   */
  const refuseStranger = async (state: RequestState, error: unknown): Promise<never> => {
    if (error instanceof ApiError && state.headers.authorization !== undefined && budget.take()) {
      const { nowMs, id: requestId, route } = state;
      const call = { operation: route!.operation.id, requestId, code: error.code, status: error.status };
      await budget.write((omitted) =>
        context.change((em, notes) => recordWrongSecret({ em, notes, nowMs }, { ...call, omitted })),
      );
    }
    throw error;
  };
  async function run(handler: AnyHandler, _context: unknown, state: RequestState): Promise<Answer> {
    const { operation, params } = state.route!;
    const by = callers.get(state)!;
    const input = { path: params, query: state.query, body: state.body };
    let body: object;
    try {
      body = await handler(input, { ...contextOf(by, context), ...analysisOf(by, analysis) });
    } catch (error) {
      if (error instanceof ApiError) await record(state, by, error.code);
      throw error;
    }
    check(state, operation.successStatus, body);
    await record(state, by, 'done');
    return { status: operation.successStatus, body };
  }
  return createPipeline({
    ...http,
    definition,
    operations: Object.keys(handlers).map((id) => operations[id as AdminOperation]),
    validators,
    checkInput: refuseNulCharacters,
    transport: { plainHttp: true, trustedProxies: [] },
    publicBaseUrls: () => [],
    isHostSigned: false,
    async authenticate(state) {
      await requireLocal(state);
      if (state.route === undefined) return;
      const { authorization } = state.headers;
      const by = await context
        .read((em) => identifyOperator(em, authorization))
        .catch((error: unknown) => refuseStranger(state, error));
      callers.set(state, by);
      const id = state.route.operation.id as AdminOperation;
      const needed = roleNeeded[id];
      if (by.operator === undefined) return requireSecret(id);
      if (includesRole(by.operator.role, needed)) return;
      await record(state, by, 'operator_role_required');
      const { role } = by.operator;
      throw new ApiError('operator_role_required', `\`${id}\` needs the role \`${needed}\`, not \`${role}\``);
    },
    handlers: Object.fromEntries(
      Object.entries(handlers).map(([id, handler]) => [id, run.bind(undefined, handler as AnyHandler)]),
    ),
  });
}

/**
 * CHOICE: the command line, which has access to the database, adds the first operator. Otherwise a local program
 * could lock the owners out of the port.
 */
function requireSecret(id: AdminOperation): void {
  if (!['addOperator', 'changeOperatorRole', 'removeOperator'].includes(id)) return;
  throw new ApiError(
    'missing_or_invalid_token',
    'expected the secret of an operator; `custos apps operators add` adds the first one',
  );
}

function contextOf(by: OperatorCaller, context: Omit<OperatorContext, 'by'>): OperatorContext {
  return {
    ...context,
    by,
    change: (work) =>
      context.change(async (em, notes) => {
        await requireInForce(em, by);
        return work(em, notes);
      }),
  };
}

function analysisOf(by: OperatorCaller, { analyze }: PolicyAnalysis): PolicyAnalysis {
  return { analyze: (work) => analyze((context) => work({ ...context, onlyAppId: by.operator?.appId })) };
}

/**
 * Returns what a request is about: the parameters of its path, and the ids and the role at the top level of its body.
 */
function targetsOf({ route, body }: RequestState): Record<string, string> {
  const given = Object.entries((body ?? {}) as Record<string, unknown>).filter(
    (entry): entry is [string, string] => /_id$|^role$/.test(entry[0]) && typeof entry[1] === 'string',
  );
  return { ...route!.params, ...Object.fromEntries(given) };
}

async function loadHandlers() {
  const [policies, { restoreWallet }, { takeOverUser }, operators] = await Promise.all([
    import('../sandbox/handlers/policies.ts'),
    import('../sandbox/handlers/apps.ts'),
    import('../sandbox/handlers/users.ts'),
    import('../sandbox/handlers/operators.ts'),
  ]);
  return { ...policies, restoreWallet, takeOverUser, ...operators } satisfies Record<AdminOperation, unknown>;
}

/** A handler without its specific input types. The validators of its operation guarantee them. */
type AnyHandler = (
  input: { path: unknown; query: unknown; body: unknown },
  context: OperatorContext & PolicyAnalysis,
) => Promise<object>;
