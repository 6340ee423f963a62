/** Thrown when the command cannot run in this environment. The message states the problem and how to solve it. */
export class StartError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StartError';
  }
}

/** Thrown when a check could not run, because what it measures does not exist or cannot be read. */
export class UnmeasurableError extends StartError {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'UnmeasurableError';
  }
}
