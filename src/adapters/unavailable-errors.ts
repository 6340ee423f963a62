interface Options extends ErrorOptions {
  /** Whether a node may have received the call; true unless it was certainly not sent. */
  readonly mayHaveArrived?: boolean;
}

/** No node could be reached, or its response was invalid. Whether a broadcast succeeded is unknown. */
export class ChainUnavailableError extends Error {
  /** Expected from time to time: logs need no stack. */
  readonly isOutage = true;
  readonly mayHaveArrived: boolean;

  constructor(message: string, { mayHaveArrived = true, ...options }: Options = {}) {
    super(message, options);
    this.name = 'ChainUnavailableError';
    this.mayHaveArrived = mayHaveArrived;
  }
}

/** A provider could not be reached, or its response was invalid. Whether a request had an effect is unknown. */
export class ProviderUnavailableError extends Error {
  /** Recognized by `isUnavailable` of `errors.ts`. */
  readonly isUnavailable = true;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ProviderUnavailableError';
  }
}

/** Several nodes of a chain answered the same question differently. The message names no node. */
export class NodesDisagreeError extends Error {
  /** Read by `disagreementOf` in `errors.ts`. */
  readonly isDisagreement = true;

  constructor(caip2: string, what: string) {
    super(`the nodes of \`${caip2}\` disagree about ${what}`);
    this.name = 'NodesDisagreeError';
  }
}
