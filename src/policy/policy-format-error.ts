/** A policy, rule or condition that cannot be given a meaning. `pointer` is relative to what was compiled. */
export class PolicyFormatError extends Error {
  readonly pointer: string;

  constructor(pointer: string, message: string) {
    super(message);
    this.name = 'PolicyFormatError';
    this.pointer = pointer;
  }
}

/** What `compile` gives; a PolicyFormatError that it throws is located from `prefix`. */
export function atPointer<T>(prefix: string, compile: () => T): T {
  try {
    return compile();
  } catch (error) {
    if (!(error instanceof PolicyFormatError)) throw error;
    throw new PolicyFormatError(prefix + error.pointer, error.message);
  }
}
