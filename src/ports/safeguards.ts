/**
 * Rules that go beyond the published behaviour. Each is an app setting of the same name; the composition defines the
 * defaults.
 */
export interface Safeguards {
  /** Archiving a wallet that has an owner requires the owner's signatures. */
  readonly archive_requires_owner: boolean;
  /**
   * Who changes the accounts by which a member of a key quorum logs in: the app secret alone; the app secret with a
   * signature of a live key of the user; or the app secret, but a new account cannot be used for so many hours.
   */
  readonly identity_changes: 'app_secret' | 'user_key' | { readonly wait_hours: number };
  /**
   * Requests that an owner signs, and intents, carry a `service-request-expiry`. That of a request is at most so many
   * seconds ahead.
   */
  readonly require_request_expiry: false | number;
  /** A signed payload is accepted once; a repeated request gets the first response. */
  readonly single_use_signatures: boolean;
  /** Test accounts can neither log in nor be listed. */
  readonly block_test_logins: boolean;
  /** A test account cannot be linked to a user who belongs to a key quorum. */
  readonly block_linking_test_accounts: boolean;
  /**
   * ALLOW rules for `*` do not apply to key exports and to what cannot be decoded, and messages and typed data that may
   * be user operations count as such.
   */
  readonly strict_methods: boolean;
  /** A policy with an owner refers only to condition sets and aggregations of the same owner. */
  readonly policy_parts_require_owner: boolean;
}
