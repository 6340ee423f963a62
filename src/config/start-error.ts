/** The command cannot run in this environment. The message states the problem and what to do about it. */
export class StartError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StartError';
  }
}

/** A command that judges could not: there is nothing to measure, or it cannot be read. */
export class UnmeasurableError extends StartError {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'UnmeasurableError';
  }
}
