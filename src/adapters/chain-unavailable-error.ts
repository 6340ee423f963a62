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
