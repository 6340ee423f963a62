/** A secret that could not be sealed or opened. Says which master key, never what was inside. */
export class VaultError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'VaultError';
  }
}
