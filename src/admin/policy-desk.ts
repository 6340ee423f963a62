import { requestValidators } from '../generated/request-validators.js';
import type { Mount } from '../http/app.ts';
import { createBodyCheck } from '../http/body-check.ts';
import { requireLocalCaller } from '../http/local-caller.ts';
import { createPipeline, type PipelineOptions } from '../http/pipeline.ts';
import { refuseNul } from '../http/refuse-nul.ts';
import { createResponseCheck } from '../http/response-check.ts';
import type { UnitSource } from '../http/unit-of-work.ts';
import type { Services } from '../operation-context.ts';
import type { PolicyDesk } from '../sandbox/control-plane.ts';

/** Questions about policies on a database, asked by the operator. */
export function policyDesk({
  services: { clock, uses },
  database,
}: {
  readonly services: Pick<Services, 'clock' | 'uses'>;
  readonly database: UnitSource;
}): PolicyDesk {
  const checkRequest = createBodyCheck(requestValidators);
  return {
    async atDesk(work) {
      await uses.flush();
      return work({ em: database.orm.em.fork(), nowMs: clock.now(), checkRequest });
    },
  };
}

interface AdminDeskOptions extends Pick<PipelineOptions, 'log' | 'newRequestId' | 'clock'> {
  readonly adminHost: string;
  readonly desk: PolicyDesk;
}

/**
 * The desk under `/policies/` of the admin port, in the control plane's words without its prefix. Loaded with the first
 * question.
 *
 * CHOICE: programs of this machine only, whoever may read the metrics: answers hold what apps have signed.
 */
export function adminDesk(options: AdminDeskOptions): Mount {
  let loading: Promise<Mount['handle']> | undefined;
  return {
    prefix: '/policies/',
    async handle(request, response) {
      loading ??= loadPipeline(options);
      request.url = `/_sandbox${request.url}`;
      return (await loading)(request, response);
    },
  };
}

async function loadPipeline({ desk, adminHost, ...options }: AdminDeskOptions): Promise<Mount['handle']> {
  const [
    { operations },
    { requestValidators: validators },
    { responseValidators },
    explainPolicy,
    replayPolicy,
    getPolicyTrace,
  ] = await Promise.all([
    import('../sandbox/generated/operations.ts'),
    import('../sandbox/generated/request-validators.js'),
    import('../sandbox/generated/response-validators.js'),
    import('../sandbox/handlers/explainPolicy.ts'),
    import('../sandbox/handlers/replayPolicy.ts'),
    import('../sandbox/handlers/getPolicyTrace.ts'),
  ]);
  const handlers = { explainPolicy, replayPolicy, getPolicyTrace };
  const check = createResponseCheck({ mode: 'always', validators: responseValidators, log: options.log });
  return createPipeline({
    ...options,
    operations: Object.keys(handlers).map((id) => operations[id as keyof typeof handlers]),
    validators,
    checkInput: refuseNul,
    transport: { plainHttp: true, trustedProxies: [] },
    authenticate: requireLocalCaller({ host: adminHost, publicUrls: [] }),
    publicBaseUrls: () => [],
    async run(exchange) {
      const { operation, params } = exchange.route!;
      const input = { path: params, query: exchange.query, body: exchange.body };
      const { run } = handlers[operation.id as keyof typeof handlers] as AnyDeskHandlerFile;
      const body = await run(input, desk);
      check(exchange, operation.successStatus, body);
      return { status: operation.successStatus, body };
    },
  });
}

/** Each fits the validators of its own operation. */
interface AnyDeskHandlerFile {
  readonly run: (
    input: { path: unknown; query: unknown; body: unknown },
    desk: PolicyDesk,
  ) => Promise<object>;
}
