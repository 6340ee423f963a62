import type { WalletActionStatus } from '../../../generated/schemas.ts';
import type { StoredStep } from './wallet-action-steps.ts';

/**
 * What distinguishes one type of wallet action from another. The engine does the rest: it stores the action with its
 * steps, follows them, settles the action when all of them have ended, and records its events.
 *
 * A new type needs one definition, listed in `action-types.ts`, and a verb that
 *
 * 1. plans outside the transaction of the request, for example with `planCalls` or `transferSenders`,
 * 2. authorizes with `authorizeUse`, whose `decode` gives policies the body with every field in every spelling,
 * 3. signs every transaction with `sendSteps`, in the transaction of the request,
 * 4. stores the action with `beginWalletAction`, in the same transaction.
 */
export interface ActionType {
  /** The event of each status. Written out, because a house test looks for the names. */
  readonly events: Readonly<Record<WalletActionStatus, string>>;
  /** The wire fields that only the outcome knows, with their values until then. */
  readonly pending: object;
  /** Wire fields that earlier versions did not store, with the values that their actions have. */
  readonly ifNotStored?: object;
  /** Wire fields that responses have and events do not. */
  readonly notInEvents: readonly string[];
  /** Wire fields that the event of success has and the other events do not. */
  readonly onlyInSuccess?: readonly string[];
  /** Wire fields that events have and responses do not. */
  readonly onlyInEvents?: readonly string[];
  /**
   * The wire fields that change when the action ends, computed from what happened and never from estimates: what
   * transactions moved is in the effects of the steps that were stored with `readsEffects` (`movedIn`), what an
   * external step delivered is in its `delivery`. `failure_reason` is added to them.
   */
  outcome(ended: EndedSteps): object;
  /** Further details of the failure, beside those of the failed step. */
  failureDetails?(ended: EndedSteps): object | undefined;
  /** The fee that an exchange took, if any; recorded as usage once the action has succeeded. */
  providerFee?(ended: EndedSteps): ProviderFee | undefined;
}

/** A fee in an asset that the contract names. */
export interface ProviderFee {
  readonly asset: string;
  /** In units of the asset, decimal. */
  readonly amount: string;
}

/** An action whose steps have all ended. */
export interface EndedSteps {
  readonly status: Exclude<WalletActionStatus, 'pending'>;
  readonly steps: readonly StoredStep[];
  /** The wire fields as of the creation, as the verb gave them. */
  // biome-ignore lint/suspicious/noExplicitAny: the verb of the same type has written them
  readonly details: any;
  /** What the verb stored for the outcome alone; undefined when it stored nothing. */
  // biome-ignore lint/suspicious/noExplicitAny: the verb of the same type has written them
  readonly terms: any;
}
