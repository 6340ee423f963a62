import type { SandboxScenarioStep } from '../sandbox/generated/schemas.ts';

/** How an Arazzo document is run. */
export interface RunOptions {
  readonly inputs?: Readonly<Record<string, unknown>>;
  /** Only this workflow, and those that it depends on. */
  readonly workflow?: string;
}

/** A step that was done, and why it failed. */
export interface ScenarioStep extends SandboxScenarioStep {
  readonly failures: readonly string[];
}

export interface ScenarioResult {
  readonly steps: readonly ScenarioStep[];
  /** Of a named scenario: the ids of what it created by type. Of a file: the outputs of its workflows by workflow. */
  readonly outputs: Readonly<Record<string, unknown>>;
}

/** A step of a file failed. The message contains its criteria and the hint of the sandbox. */
export class ScenarioFailedError extends Error {
  readonly steps: readonly ScenarioStep[];

  constructor(
    name: string,
    { steps, reasons }: { steps: readonly ScenarioStep[]; reasons: readonly string[] },
  ) {
    super([`${name} failed`, ...reasons].join('\n'));
    this.name = 'ScenarioFailedError';
    this.steps = steps;
  }
}
