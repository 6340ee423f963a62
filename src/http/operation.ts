import type { ValidateFunction } from '../generated/validate-function.ts';

/** An operation as the pipeline sees it: a row of the generated table of either contract. */
export interface Operation {
  readonly id: string;
  /** Upper case. */
  readonly method: string;
  /** Template: `/v1/wallets/{wallet_id}`. */
  readonly path: string;
  readonly successStatus: number;
  /** The media type of a success response that is a file; left out for JSON. */
  readonly fileType?: string;
  readonly hasBody: boolean;
  readonly bodyRequired: boolean;
  /** The fields of a body that may also be a form; undefined: it is always JSON. */
  readonly formFields?: readonly string[];
  /** Left out for operations with the limit of all bodies. */
  readonly maxBodyBytes?: number;
  /** It changes nothing although it is not a GET; left out for all others. */
  readonly isReadOnly?: boolean;
  readonly idempotent: boolean;
  readonly security: 'none' | 'app' | 'app-or-origin' | 'app-or-user' | 'oauth-client';
}

export interface RequestValidators {
  /** Validates `{path, query, headers}`. */
  readonly params: ValidateFunction;
  readonly body?: ValidateFunction;
}
