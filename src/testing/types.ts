import type { OperationId, Operations } from '../generated/operations.ts';
import type { SandboxScenarioStep } from '../sandbox/generated/schemas.ts';

export type { OperationId, Operations };

/** Path, query and body of an operation, as far as it has them. */
export type CallInput<Id extends OperationId> = Part<'path', Operations[Id]['path']> &
  Part<'query', Operations[Id]['query']> &
  Part<'body', Operations[Id]['body']>;

/** A part is required when it has a required member. */
type Part<Name extends string, Value> = [Value] extends [undefined]
  ? { [N in Name]?: undefined }
  : undefined extends Value
    ? { [N in Name]?: Value }
    : Record<string, never> extends Value
      ? { [N in Name]?: Value }
      : { [N in Name]: Value };

/** The options of a call besides its input. */
export interface CallOptions {
  readonly idempotencyKey?: string;
  /** Unix ms, by the sandbox's clock. */
  readonly expiryMs?: number;
  /** A user's access token, instead of the app secret. */
  readonly userToken?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The body of a refusal. */
export interface Refusal {
  readonly error: string;
  readonly code?: string;
  readonly data?: Readonly<Record<string, unknown>> & { readonly hint?: string };
}

interface AnyAnswer {
  readonly operation: OperationId;
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** A response: `data` of a success, `error` of a refusal. */
export type Answer<Id extends OperationId> = AnyAnswer &
  (
    | { readonly data: Operations[Id]['response']; readonly error?: undefined }
    | { readonly data?: undefined; readonly error: Refusal }
  );

/** The sandbox refused a call that was expected to succeed. The message contains its hint. */
export class CallRefusedError extends Error {
  readonly status: number;
  readonly code: string | undefined;
  readonly data: Refusal['data'];

  constructor(operation: string, status: number, refusal: Refusal) {
    const hint = refusal.data?.hint === undefined ? '' : ` (${refusal.data.hint})`;
    super(`${operation} was refused with ${status}: ${refusal.error}${hint}`);
    this.name = 'CallRefusedError';
    this.status = status;
    this.code = refusal.code;
    this.data = refusal.data;
  }
}

/** Calls operations of the API, signed if they accept signatures. */
export interface Caller {
  /** The body of the response. @throws CallRefusedError */
  call<Id extends OperationId>(
    id: Id,
    ...input: OptionalIfEmpty<CallInput<Id>>
  ): Promise<Operations[Id]['response']>;
  /** The response, a success or a refusal. */
  attempt<Id extends OperationId>(id: Id, ...input: OptionalIfEmpty<CallInput<Id>>): Promise<Answer<Id>>;
}

type OptionalIfEmpty<Input> =
  Record<string, never> extends Input
    ? [input?: Input, options?: CallOptions]
    : [input: Input, options?: CallOptions];

/** Options for running an Arazzo document. */
export interface RunOptions {
  readonly inputs?: Readonly<Record<string, unknown>>;
  /** Only this workflow, and those that it depends on. */
  readonly workflow?: string;
}

/** A step that was done, and why it failed. */
export interface ScenarioStep extends SandboxScenarioStep {
  readonly failures: readonly string[];
}

export interface ScenarioResult {
  readonly steps: readonly ScenarioStep[];
  /**
   * For a named scenario: the ids of the created resources, by type. For a file: the outputs of its workflows, by
   * workflow.
   */
  readonly outputs: Readonly<Record<string, unknown>>;
}

/** A step of a file failed. The message contains its criteria and the hint of the sandbox. */
export class ScenarioFailedError extends Error {
  readonly steps: readonly ScenarioStep[];

  constructor(
    name: string,
    { steps, reasons }: { steps: readonly ScenarioStep[]; reasons: readonly string[] },
  ) {
    super([`${name} failed`, ...reasons].join('\n'));
    this.name = 'ScenarioFailedError';
    this.steps = steps;
  }
}
