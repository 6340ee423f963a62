import { type AuthorizationKey, aliceKey, bobKey, carolKey } from '../../mocks/authorization-keys.ts';
import type { OperationId, Operations } from '../generated/operations.ts';
import type { SandboxScenarioStep } from '../sandbox/generated/schemas.ts';

export type { OperationId, Operations };

/** A P-256 key pair that signs requests, as base64 of PKCS #8 and of SubjectPublicKeyInfo. */
export type Signer = AuthorizationKey;

/**
 * The keys of the seeded users. Alice owns the wallet `ext_wal_alice`. The wallet `ext_wal_treasury` needs signatures
 * of two of the three.
 */
export const alice: Signer = aliceKey;
export const bob: Signer = bobKey;
export const carol: Signer = carolKey;

/** The path, query and body of an operation. Parts that the operation does not have are omitted. */
export type CallInput<Id extends OperationId> = Part<'path', Operations[Id]['path']> &
  Part<'query', Operations[Id]['query']> &
  Part<'body', Operations[Id]['body']>;

/** Makes a part optional if none of its members is required. */
type Part<Name extends string, Value> = [Value] extends [undefined]
  ? { [N in Name]?: undefined }
  : undefined extends Value
    ? { [N in Name]?: Value }
    : Record<string, never> extends Value
      ? { [N in Name]?: Value }
      : { [N in Name]: Value };

/** The options of a call, without its input. */
export interface CallOptions {
  readonly idempotencyKey?: string;
  /** Unix ms by the sandbox's clock. */
  readonly expiryMs?: number;
  /** A user's access token, which replaces the app secret. */
  readonly userToken?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The body of an error response. */
export interface Refusal {
  readonly error: string;
  readonly code?: string;
  readonly data?: Readonly<Record<string, unknown>> & { readonly hint?: string };
}

interface AnyAnswer {
  readonly operation: OperationId;
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The URL of the request's page in the inspector, which works while the sandbox runs. */
  readonly inspectorUrl: string;
}

/** The response to a call: `data` for a success, `error` for an error. */
export type Answer<Id extends OperationId> = AnyAnswer &
  (
    | { readonly data: Operations[Id]['response']; readonly error?: undefined }
    | { readonly data?: undefined; readonly error: Refusal }
  );

/** Thrown when the sandbox rejects a call that should succeed. The message contains the sandbox's hint. */
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

/** Calls operations of the API. Signs requests to operations that accept signatures. */
export interface Caller {
  /**
   * Calls an operation and returns the body of the response.
   *
   * @throws CallRefusedError
   */
  call<Id extends OperationId>(
    id: Id,
    ...input: OptionalIfEmpty<CallInput<Id>>
  ): Promise<Operations[Id]['response']>;
  /** Calls an operation and returns the response, whether it is a success or an error. */
  attempt<Id extends OperationId>(id: Id, ...input: OptionalIfEmpty<CallInput<Id>>): Promise<Answer<Id>>;
}

type OptionalIfEmpty<Input> =
  Record<string, never> extends Input
    ? [input?: Input, options?: CallOptions]
    : [input: Input, options?: CallOptions];

/** Options for running an Arazzo document. */
export interface RunOptions {
  readonly inputs?: Readonly<Record<string, unknown>>;
  /** Runs only this workflow and the workflows on which it depends. */
  readonly workflow?: string;
}

/** A step that was run, and the reasons why it failed. */
export interface ScenarioStep extends SandboxScenarioStep {
  readonly failures: readonly string[];
}

export interface ScenarioResult {
  readonly steps: readonly ScenarioStep[];
  /**
   * For a built-in scenario, the ids of the created resources by type. For a file, the outputs of each workflow by
   * the workflow's id.
   */
  readonly outputs: Readonly<Record<string, unknown>>;
}

/**
 * Thrown when a step of a file failed. The message contains the criteria that were not satisfied and the sandbox's
 * hint.
 */
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

interface AnyEvent {
  readonly type: string;
  readonly payload: unknown;
}

const SHOWN_EVENTS = 3;

/**
 * Describes the events of the wanted type that come nearest, each by its differences. If there is none, lists the
 * types of the events that were recorded.
 */
export function nearMisses(
  others: readonly AnyEvent[],
  {
    where,
    all,
  }: {
    readonly where: Readonly<Record<string, string | number | boolean>>;
    readonly all: readonly AnyEvent[];
  },
): string {
  if (others.length === 0) {
    const types = [...new Set(all.map(({ type }) => type))];
    return types.length === 0 ? 'no event at all' : `none of this type, but ${types.join(', ')}`;
  }
  const nearest = others
    .map(({ payload }) =>
      Object.entries(where)
        .map(([path, value]) => ({ path, value, got: valueAt(payload, path) }))
        .filter(({ value, got }) => String(got) !== String(value)),
    )
    .sort((one, other) => one.length - other.length)
    .slice(0, SHOWN_EVENTS)
    .map((each) => each.map(({ path, value, got }) => differs(path, value, got)).join(', '));
  return `${others.length} of this type with other values: ${nearest.join('; ')}`;
}

function valueAt(payload: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((value, name) => (value as Record<string, unknown> | null)?.[name], payload);
}

/** Describes how a value differs from the expected one. */
export function differs(name: string, expected: unknown, got: unknown): string {
  return `${name}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(got)}`;
}
