import { type OperationId, type Operations, operations } from '../../sandbox/generated/operations.ts';

/** Thrown when the sandbox returns an error response, or no response. Without a response, `status` is 0. */
export class ControlError extends Error {
  readonly status: number;
  readonly code: string | undefined;
  /** The problems in the request, by JSON pointers to its members. */
  readonly issues: readonly RequestIssue[];

  constructor(status: number, message: string, code?: string, issues: readonly RequestIssue[] = []) {
    super(message);
    this.status = status;
    this.code = code;
    this.issues = issues;
  }
}

interface RequestIssue {
  readonly pointer: string;
  readonly message: string;
}

/** Returns the problems that the body of an error response names. */
export function issuesIn(body: unknown): readonly RequestIssue[] {
  const { data } = (body ?? {}) as { data?: { issues?: readonly RequestIssue[] } };
  return data?.issues ?? [];
}

/** The path, query and body of an operation. Parts that the operation does not have are omitted. */
export type ControlInput<Id extends OperationId> = Part<'path', Operations[Id]['path']> &
  Part<'query', Operations[Id]['query']> &
  Part<'body', Operations[Id]['body']>;

type Part<Name extends string, Value> =
  Record<string, never> extends Value
    ? { readonly [N in Name]?: Value }
    : undefined extends Value
      ? { readonly [N in Name]?: Value }
      : { readonly [N in Name]: Value };

/**
 * Calls an operation of the control plane.
 *
 * @throws ControlError for an error response, or if there is no response.
 */
export async function control<Id extends OperationId>(
  id: Id,
  input: ControlInput<Id>,
  signal?: AbortSignal,
): Promise<Operations[Id]['response']> {
  const { path, query, body } = input as { path?: object; query?: object; body?: unknown };
  const { method, path: template } = operations[id];
  const response = await send(fillPath(template, path) + queryText(query), {
    method,
    ...(signal === undefined ? {} : { signal }),
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  });
  const answered: unknown = await response.json().catch(() => ({}));
  if (response.ok) return answered as Operations[Id]['response'];
  const { error = `status ${response.status}`, code } = answered as { error?: string; code?: string };
  throw new ControlError(response.status, error, code, issuesIn(answered));
}

async function send(target: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(target, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ControlError(0, 'the sandbox does not respond');
  }
}

/** Fills in the parameters of a path template. */
export function fillPath(template: string, values: object = {}): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String((values as Record<string, unknown>)[name])),
  );
}

/** Builds a query string. An array becomes a repeated parameter, and undefined members are omitted. */
export function queryText(query: object = {}): string {
  const pairs = Object.entries(query).flatMap(([name, value]: [string, unknown]) =>
    value === undefined ? [] : [value].flat().map((item): [string, string] => [name, String(item)]),
  );
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`;
}
