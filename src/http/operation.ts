import type { ValidateFunction } from '../generated/validate-function.ts';

/** What the pipeline knows of an operation: a row of the generated table, free of the contract it belongs to. */
export interface Operation {
  readonly id: string;
  /** Upper case. */
  readonly method: string;
  /** Template: `/v1/wallets/{wallet_id}`. */
  readonly path: string;
  readonly successStatus: number;
  readonly hasBody: boolean;
  readonly bodyRequired: boolean;
  readonly idempotent: boolean;
  readonly security: 'none' | 'app' | 'app-or-user';
}

export interface RequestValidators {
  /** Judges `{path, query, headers}`. */
  readonly params: ValidateFunction;
  readonly body?: ValidateFunction;
}
