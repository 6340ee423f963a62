import { invalidField } from '../../errors.ts';
import type { BodyChange } from '../../ports/refusals.ts';
import type { AnsweredRequest } from '../../ports/requests.ts';
import { InvalidPathError, parsePath, valueAt, withValueAt } from '../events.ts';
import type { ReplaySandboxRequest, SandboxSigner } from '../generated/schemas.ts';

/** The name of a key in the sandbox's seed data. */
export type Signer = SandboxSigner;

/** A request to the API, by operation. */
export interface ApiCall {
  /** The `operationId` in the API document. */
  readonly operation: string;
  readonly path: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly signAs: readonly Signer[];
  readonly isRecorded: boolean;
}

/** The response. Status 0 means that the server closed the connection without a response. */
export interface ApiResponse {
  readonly status: number;
  readonly requestId: string | undefined;
  readonly text: string;
}

/** The API of this server, as a client sees it. */
export interface OwnApi {
  /**
   * Calls an operation.
   *
   * @throws ApiError invalid_data for an unknown operation or a missing path parameter.
   */
  call(call: ApiCall, signal: AbortSignal): Promise<ApiResponse>;
  /**
   * Adds a signature to the request that an intent proposes. If the intent cannot be read, returns the error
   * response.
   */
  signIntent(
    intentId: string,
    signer: Signer,
    at: { readonly nowMs: number; readonly signal: AbortSignal },
  ): Promise<ApiResponse>;
  /**
   * Sends a recorded request again, changed and signed as `repetition` says. Leaves out the idempotency key, for which
   * the server would return the stored response, unless it is covered by a signature that the sandbox cannot make.
   *
   * @throws ApiError invalid_data for a change that the body does not allow.
   */
  repeat(
    answered: AnsweredRequest,
    repetition: ReplaySandboxRequest,
    at: { readonly nowMs: number; readonly signal: AbortSignal },
  ): Promise<ApiResponse>;
}

/**
 * Applies changes to a JSON body in order. They work as in RFC 6902, except that `add` replaces an element of a list.
 *
 * @throws ApiError invalid_data, which names the change.
 */
export function changedBody(body: unknown, changes: readonly BodyChange[]): unknown {
  return changes.reduce((at, change, index) => {
    try {
      return applied(at, change);
    } catch (error) {
      if (!(error instanceof InvalidPathError)) throw error;
      throw invalidField(`/changes/body/${index}`, error.message);
    }
  }, body);
}

function applied(body: unknown, { op, path, from, value }: BodyChange): unknown {
  if (op === 'remove') return without(body, pointer(path));
  if (op !== 'move') return withValueAt(body, pointer(path), value);
  const source = pointer(from ?? '');
  const moved = valueAt(body, source);
  if (moved === undefined) throw new InvalidPathError(`expected a value at \`${from ?? ''}\`, got none`);
  return withValueAt(without(body, source), pointer(path), moved);
}

function pointer(text: string): readonly string[] {
  if (text === '') return [];
  if (text.startsWith('/')) return parsePath(text);
  throw new InvalidPathError(`expected a JSON pointer, got \`${text}\``);
}

function without(body: unknown, path: readonly string[]): unknown {
  const parent = path.slice(0, -1);
  const name = path.at(-1);
  const around = valueAt(body, parent);
  if (name === undefined || valueAt(body, path) === undefined)
    throw new InvalidPathError('expected a value to remove, got none');
  const rest = Array.isArray(around)
    ? around.toSpliced(Number(name), 1)
    : Object.fromEntries(Object.entries(around as object).filter(([each]) => each !== name));
  return parent.length === 0 ? rest : withValueAt(body, parent, rest);
}
