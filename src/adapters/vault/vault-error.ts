/** A secret could not be sealed or opened. The message may name the master key's id, never the content. */
export class VaultError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'VaultError';
  }
}
