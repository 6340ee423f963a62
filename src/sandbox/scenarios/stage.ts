import { ApiError } from '../../errors.ts';
import type { ControlContext } from '../control-plane.ts';
import type { SandboxScenarioResource, SandboxScenarioStep } from '../generated/schemas.ts';
import type { Signer } from '../requests/own-api.ts';

/** The key of a seeded user. */
export interface SeededKey {
  readonly name: Signer;
  readonly publicKey: string;
}

/** A request to the API of this sandbox with the credentials of its app. */
export interface ApiRequest {
  /** The `operationId`. */
  readonly operation: string;
  readonly path?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly signWith?: readonly SeededKey[];
}

interface ApiAnswer {
  readonly requestId: string | null;
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Where a scenario is played: does its steps and notes them. */
export interface Stage {
  readonly context: ControlContext;
  readonly alice: SeededKey;
  readonly bob: SeededKey;
  readonly resources: readonly SandboxScenarioResource[];
  readonly steps: readonly SandboxScenarioStep[];
  /** Creates a resource of this type, which must succeed; returns its id. */
  create(type: string, summary: string, request: ApiRequest): Promise<string>;
  /** Sends a request whatever it answers. */
  call(summary: string, request: ApiRequest): Promise<ApiAnswer>;
  /** Notes a step that is no request. */
  note(summary: string): void;
}

export function openStage(context: ControlContext): Stage {
  const resources: SandboxScenarioResource[] = [];
  const steps: SandboxScenarioStep[] = [];
  const call: Stage['call'] = async (summary, request) => {
    const { operation, path = {}, body: sent, signWith = [] } = request;
    const signAs = signWith.map(({ name }) => name);
    const call = { operation, path, query: {}, headers: {}, body: sent, signAs, isRecorded: true };
    const { status, text, requestId = null } = await context.ownApi.call(call, context.signal);
    const body = (text === '' ? {} : JSON.parse(text)) as ApiAnswer['body'];
    const code = status > 0 && status < 400 ? null : String(body.code ?? body.error);
    steps.push({ summary, request_id: requestId, operation, status, code });
    return { status, body, requestId };
  };
  return {
    context,
    ...context.seededKeys,
    resources,
    steps,
    call,
    async create(type, summary, request) {
      const { status, body, requestId } = await call(summary, request);
      if (status === 0 || status >= 400) throw failed(request.operation, requestId, body);
      const id = String(body[`${type}_id`] ?? body.id);
      resources.push({ type, id });
      return id;
    },
    note: (summary) =>
      void steps.push({ summary, request_id: null, operation: null, status: null, code: null }),
  };
}

/** What a scenario needs did not succeed, for example because of a fault rule. */
function failed(operation: string, requestId: string | null, body: ApiAnswer['body']): ApiError {
  return new ApiError(
    'invalid_state',
    `\`${operation}\` did not succeed: ${String(body.error)}; \`custos why ${requestId}\` explains it`,
  );
}
