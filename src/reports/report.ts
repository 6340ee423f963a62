/** What a command found, for the formats that other programs read. */
export interface Report {
  /** `custos coverage`. */
  readonly tool: string;
  readonly version: string;
  readonly rules: readonly Rule[];
  readonly suites: readonly Suite[];
}

/** A kind of finding. */
interface Rule {
  readonly id: string;
  readonly description: string;
}

/** Checks that belong together. */
export interface Suite {
  readonly name: string;
  readonly checks: readonly Check[];
}

export interface Check {
  readonly name: string;
  /** `failed`: breaks the build. `skipped`: reported, and does not. */
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** Of a check that did not pass: the id of its rule, and what was expected and found. */
  readonly finding?: { readonly rule: string; readonly message: string; readonly details?: string };
  /** The file that the finding is about. */
  readonly file?: string | undefined;
}
