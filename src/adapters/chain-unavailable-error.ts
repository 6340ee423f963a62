/** No node could be reached, or its response was invalid. Whether a broadcast succeeded is unknown. */
export class ChainUnavailableError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ChainUnavailableError';
  }
}
