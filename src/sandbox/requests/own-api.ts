import type { AnsweredRequest } from '../../ports/requests.ts';
import type { SandboxSigner } from '../generated/schemas.ts';

/** A key of the sandbox's seed data. */
export type Signer = SandboxSigner;

/** A request to the API. */
export interface ApiCall {
  /** The `operationId` of the contract. */
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
  /** @throws ApiError invalid_data for an unknown operation or a missing parameter of the path. */
  call(call: ApiCall, signal: AbortSignal): Promise<ApiResponse>;
  /**
   * Adds a signature to the request that an intent proposes. Returns the error response when the intent cannot be
   * read.
   */
  signIntent(
    intentId: string,
    signer: Signer,
    at: { readonly nowMs: number; readonly signal: AbortSignal },
  ): Promise<ApiResponse>;
  /** Without `signAs`, sends the request unchanged. */
  repeat(
    answered: AnsweredRequest,
    signAs: readonly Signer[] | undefined,
    signal: AbortSignal,
  ): Promise<ApiResponse>;
}
