/** Several nodes of a chain answered the same question differently. The message names no node. */
export class NodesDisagreeError extends Error {
  /** Read by `disagreementOf` in `errors.ts`. */
  readonly isDisagreement = true;

  constructor(caip2: string, what: string) {
    super(`the nodes of \`${caip2}\` disagree about ${what}`);
    this.name = 'NodesDisagreeError';
  }
}
