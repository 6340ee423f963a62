import type { KnownAction } from '../provable-rules.ts';

/** What a task is of an action that the server builds from a signed request. */
export interface BuiltPart {
  /**
   * What it does: each role is signed for apart, so that a request for one payment is not signed for another one in
   * place of an approval. `prepares`: it moves nothing, but allows or delegates what a payment needs.
   */
  readonly role: 'prepares' | 'pays' | 'passes on';
  /** For how many transactions of this role the request is signed at once. */
  readonly atOnce: number;
  /** Addresses that must be the wallet's own. */
  readonly accounts: readonly string[];
  /**
   * What policies evaluate, and which fields of it do not follow from the request and the task.
   *
   * @param address the wallet's.
   */
  action(address: string): KnownAction;
}
