import { requestValidators } from '../generated/request-validators.js';
import type { Mount } from '../http/app.ts';
import { createBodyCheck } from '../http/body-check.ts';
import { requireLocalCaller } from '../http/origins/local-caller.ts';
import { createPipeline, type PipelineOptions } from '../http/pipeline.ts';
import { refuseNul } from '../http/refuse-nul.ts';
import { createResponseCheck } from '../http/response-check.ts';
import type { UnitSource } from '../http/unit-of-work.ts';
import { loadOnce } from '../load-once.ts';
import type { Services } from '../operation-context.ts';
import type { PolicyAnalysis } from '../sandbox/control-plane.ts';

/** Explains, replays and lints policies for the operator, directly on a database. */
export function policyAnalysis({
  services: { clock, uses },
  database,
}: {
  readonly services: Pick<Services, 'clock' | 'uses'>;
  readonly database: UnitSource;
}): PolicyAnalysis {
  const checkRequest = createBodyCheck(requestValidators);
  return {
    async analyze(work) {
      await uses.flush();
      return work({ em: database.orm.em.fork(), nowMs: clock.now(), checkRequest });
    },
  };
}

interface AdminAnalysisOptions extends Pick<PipelineOptions, 'log' | 'newRequestId' | 'clock'> {
  readonly adminHost: string;
  readonly analysis: PolicyAnalysis;
}

/**
 * The control plane's policy operations under `/policies/` on the admin port. Loaded on the first request.
 *
 * CHOICE: accepts local callers only, even where the metrics are public: responses contain what apps have signed.
 */
export function adminAnalysis(options: AdminAnalysisOptions): Mount {
  const load = loadOnce(() => loadPipeline(options));
  return {
    prefix: '/policies/',
    async handle(request, response) {
      const handle = await load();
      request.url = `/_sandbox${request.url}`;
      return handle(request, response);
    },
  };
}

async function loadPipeline({
  analysis,
  adminHost,
  ...options
}: AdminAnalysisOptions): Promise<Mount['handle']> {
  const [
    { operations },
    { requestValidators: validators },
    { responseValidators },
    explainPolicy,
    replayPolicy,
    lintPolicy,
    getPolicyTrace,
  ] = await Promise.all([
    import('../sandbox/generated/operations.ts'),
    import('../sandbox/generated/request-validators.js'),
    import('../sandbox/generated/response-validators.js'),
    import('../sandbox/handlers/explainPolicy.ts'),
    import('../sandbox/handlers/replayPolicy.ts'),
    import('../sandbox/handlers/lintPolicy.ts'),
    import('../sandbox/handlers/getPolicyTrace.ts'),
  ]);
  const handlers = { explainPolicy, replayPolicy, lintPolicy, getPolicyTrace };
  const check = createResponseCheck({ mode: 'always', validators: responseValidators, log: options.log });
  return createPipeline({
    ...options,
    operations: Object.keys(handlers).map((id) => operations[id as keyof typeof handlers]),
    validators,
    checkInput: refuseNul,
    transport: { plainHttp: true, trustedProxies: [] },
    authenticate: requireLocalCaller({ host: adminHost, publicUrls: [] }),
    publicBaseUrls: () => [],
    isHostSigned: false,
    async run(exchange) {
      const { operation, params } = exchange.route!;
      const input = { path: params, query: exchange.query, body: exchange.body };
      const { run } = handlers[operation.id as keyof typeof handlers] as AnyAnalysisHandlerFile;
      const body = await run(input, analysis);
      check(exchange, operation.successStatus, body);
      return { status: operation.successStatus, body };
    },
  });
}

/** A handler file with its input types erased; the validators of its operation guarantee them. */
interface AnyAnalysisHandlerFile {
  readonly run: (
    input: { path: unknown; query: unknown; body: unknown },
    analysis: PolicyAnalysis,
  ) => Promise<object>;
}
