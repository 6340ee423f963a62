import type { Mount } from '../http/app.ts';
import { requireLocalCaller } from '../http/origins/local-caller.ts';
import { createPipeline, type PipelineOptions } from '../http/pipeline.ts';
import { refuseNul } from '../http/refuse-nul.ts';
import { createResponseCheck } from '../http/response-check.ts';
import { loadOnce } from '../load-once.ts';
import type { OperatorContext } from '../sandbox/control-plane.ts';

interface OperatorActionsOptions extends Pick<PipelineOptions, 'log' | 'newRequestId' | 'clock'> {
  readonly adminHost: string;
  readonly context: OperatorContext;
}

/**
 * The control plane's operations that production has as well, on the admin port: `POST /wallets/{id}/restore` and
 * `POST /users/{id}/take_over`. Loaded on the first request. Accepts local callers only.
 */
export function operatorActions(options: OperatorActionsOptions): Mount[] {
  const load = loadOnce(() => loadPipeline(options));
  return ['/wallets/', '/users/'].map((prefix) => ({
    prefix,
    async handle(request, response) {
      const handle = await load();
      request.url = `/_sandbox${request.url}`;
      return handle(request, response);
    },
  }));
}

async function loadPipeline({
  context,
  adminHost,
  ...options
}: OperatorActionsOptions): Promise<Mount['handle']> {
  const [
    { operations },
    { requestValidators: validators },
    { responseValidators },
    restoreWallet,
    takeOverUser,
  ] = await Promise.all([
    import('../sandbox/generated/operations.ts'),
    import('../sandbox/generated/request-validators.js'),
    import('../sandbox/generated/response-validators.js'),
    import('../sandbox/handlers/restoreWallet.ts'),
    import('../sandbox/handlers/takeOverUser.ts'),
  ]);
  const handlers = { restoreWallet, takeOverUser };
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
      const { run } = handlers[operation.id as keyof typeof handlers] as AnyOperatorHandlerFile;
      const body = await run(input, context);
      check(exchange, operation.successStatus, body);
      return { status: operation.successStatus, body };
    },
  });
}

/** A handler file with its input types erased; the validators of its operation guarantee them. */
interface AnyOperatorHandlerFile {
  readonly run: (
    input: { path: unknown; query: unknown; body: unknown },
    context: OperatorContext,
  ) => Promise<object>;
}
