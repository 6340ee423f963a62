/** A secret could not be sealed or opened. The message may name the master key's id, never the content. */
export class VaultError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'VaultError';
  }
}

/** What wraps the data keys cannot be reached or refuses. It may answer later, so that nothing is wrong with the secret. */
export class MasterKeyUnavailableError extends VaultError {
  /** Recognized by `isUnavailable` of `errors.ts`. */
  readonly isUnavailable = true;
  readonly unavailable = 'the key management service';

  constructor(message: string) {
    super(message);
    this.name = 'MasterKeyUnavailableError';
  }
}
