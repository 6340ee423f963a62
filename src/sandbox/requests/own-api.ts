import type { AnsweredRequest } from '../../ports/requests.ts';
import type { SandboxSigner } from '../generated/schemas.ts';

/** A key of the seed data. */
export type Signer = SandboxSigner;

/** A request to the API. */
export interface ApiCall {
  /** The `operationId`. */
  readonly operation: string;
  readonly path: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly signAs: readonly Signer[];
  readonly isRecorded: boolean;
}

/** Status 0: the connection was closed without a response. */
export interface ApiResponse {
  readonly status: number;
  readonly requestId: string | undefined;
  readonly text: string;
}

/** The API of this server, as a client sees it. */
export interface OwnApi {
  /** @throws ApiError invalid_data for an unknown operation or a missing parameter of its path. */
  call(call: ApiCall, signal: AbortSignal): Promise<ApiResponse>;
  /** Adds a signature of the request that an intent proposes. Returns the refusal if it cannot be read. */
  signIntent(
    intentId: string,
    signer: Signer,
    at: { readonly nowMs: number; readonly signal: AbortSignal },
  ): Promise<ApiResponse>;
  /** `signAs`: undefined sends the request as it was. */
  repeat(
    answered: AnsweredRequest,
    signAs: readonly Signer[] | undefined,
    signal: AbortSignal,
  ): Promise<ApiResponse>;
}
