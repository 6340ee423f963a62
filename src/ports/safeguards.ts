/**
 * Rules that go beyond the published behaviour. Each is an app setting of the same name; the composition defines the
 * defaults.
 */
export interface Safeguards {
  /** Archiving a wallet that has an owner requires the owner's signatures. */
  readonly archive_requires_owner: boolean;
}
