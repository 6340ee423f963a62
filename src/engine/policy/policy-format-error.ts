/** The policy, rule, condition or aggregation is invalid. `pointer` is relative to the compiled value. */
export class PolicyFormatError extends Error {
  readonly pointer: string;

  constructor(pointer: string, message: string) {
    super(message);
    this.name = 'PolicyFormatError';
    this.pointer = pointer;
  }
}

/** Calls `compile` and prepends `prefix` to the pointer of a PolicyFormatError that it throws. */
export function atPointer<T>(prefix: string, compile: () => T): T {
  try {
    return compile();
  } catch (error) {
    if (!(error instanceof PolicyFormatError)) throw error;
    throw new PolicyFormatError(prefix + error.pointer, error.message);
  }
}
