/**
 * Rules that go beyond the published behaviour. Each is a setting of the app under the same name; the composition gives
 * the defaults of settings that an app has not set.
 */
export interface Safeguards {
  /** Archiving a wallet that has an owner requires the owner's signatures. */
  readonly archive_requires_owner: boolean;
}
