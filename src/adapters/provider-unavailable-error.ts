/** A provider could not be reached, or its response was invalid. Whether a request had an effect is unknown. */
export class ProviderUnavailableError extends Error {
  /** Recognized by `isUnavailable` of `errors.ts`. */
  readonly isUnavailable = true;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ProviderUnavailableError';
  }
}
