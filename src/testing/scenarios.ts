import { readArazzoFile } from '../client/arazzo/read-document.ts';
import { isArazzoFile, runDocument } from '../client/arazzo/run-document.ts';
import { runScenario } from '../client/scenarios.ts';
import type { SandboxScenarioStep } from '../sandbox/generated/schemas.ts';
import type { Connection } from './connection.ts';

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

/** Runs a scenario by name, or an Arazzo document by its file. @throws ScenarioFailedError */
export async function playScenario(
  connection: Connection,
  nameOrFile: string,
  options: RunOptions = {},
): Promise<ScenarioResult> {
  if (!isArazzoFile(nameOrFile)) {
    const { resources, steps } = await runScenario(connection, nameOrFile);
    return {
      steps: steps.map((step) => ({ ...step, failures: [] })),
      outputs: Object.fromEntries(resources.map(({ type, id }) => [type, id])),
    };
  }
  const { name, succeeded, steps, outputs } = await runDocument(
    connection,
    readArazzoFile(nameOrFile),
    options,
  );
  if (succeeded) return { steps, outputs };
  const reasons = steps.flatMap(({ step, failures, hint }) =>
    failures.map((failure) => `${step}: ${failure}${hint === null ? '' : ` (${hint})`}`),
  );
  throw new ScenarioFailedError(name, { steps, reasons });
}
