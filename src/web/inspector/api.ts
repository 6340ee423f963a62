import type { OperationId, Operations } from '../../generated/operations.ts';
import type { SandboxSigner, SentRequest } from '../../sandbox/generated/schemas.ts';
import { ControlError, control } from './control.ts';

/** Path, query and body of an operation of the API. */
export interface ApiInput<Id extends OperationId> {
  readonly path?: Operations[Id]['path'];
  readonly query?: Operations[Id]['query'];
  readonly body?: Operations[Id]['body'];
}

export const signers: readonly SandboxSigner[] = ['alice', 'bob', 'carol'];

/**
 * Reads from the API with the credentials of the sandbox's app. The request does not appear in the request log.
 *
 * @throws ControlError for an error response.
 */
export async function readApi<Id extends OperationId>(
  id: Id,
  input: ApiInput<Id>,
  signal?: AbortSignal,
): Promise<Operations[Id]['response']> {
  const { path, query, body } = input as { path?: Record<string, string>; query?: object; body?: unknown };
  const sent = await control(
    'sendRequest',
    {
      body: {
        operation: id,
        path: path ?? {},
        query: { ...query },
        is_recorded: false,
        ...(body === undefined ? {} : { body }),
      },
    },
    signal,
  );
  if (sent.status >= 200 && sent.status < 300) return sent.body as Operations[Id]['response'];
  throw new ControlError(sent.status, errorOf(sent));
}

/** Returns the error message of a failed request. */
export function errorOf({ status, body }: Pick<SentRequest, 'status' | 'body'>): string {
  const { error } = (body ?? {}) as { error?: string };
  return error ?? (status === 0 ? 'the connection was closed without a response' : `status ${status}`);
}
