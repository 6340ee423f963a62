/** A node that cannot be reached, or one that answers nonsense. Nothing is known of what was sent. */
export class ChainUnavailableError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ChainUnavailableError';
  }
}
