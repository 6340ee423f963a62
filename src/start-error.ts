/** The surroundings do not allow what was asked. The text says what is wrong and what to do about it. */
export class StartError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StartError';
  }
}
