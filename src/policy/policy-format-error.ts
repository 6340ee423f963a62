/** A policy, rule or condition that cannot be given a meaning. `pointer` is relative to what was compiled. */
export class PolicyFormatError extends Error {
  readonly pointer: string;

  constructor(pointer: string, message: string) {
    super(message);
    this.name = 'PolicyFormatError';
    this.pointer = pointer;
  }
}
