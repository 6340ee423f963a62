interface Options extends ErrorOptions {
  /** Whether a node may have received the call. It is true unless the call was certainly not sent. */
  readonly mayHaveArrived?: boolean;
}

/** No node could be reached, or its response was invalid. Whether a broadcast succeeded is unknown. */
export class ChainUnavailableError extends Error {
  /** This is expected from time to time, so logs omit the stack. */
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
  /** `isUnavailable` in `errors.ts` reads this field. */
  readonly isUnavailable = true;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ProviderUnavailableError';
  }
}

/** Thrown when the nodes of a chain return different results for the same query. The message does not name any node. */
export class NodesDisagreeError extends Error {
  /** `disagreementOf` in `errors.ts` reads this field. */
  readonly isDisagreement = true;

  constructor(caip2: string, what: string) {
    super(`the nodes of \`${caip2}\` disagree about ${what}`);
    this.name = 'NodesDisagreeError';
  }
}
