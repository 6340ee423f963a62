import { readArazzoFile } from '../tools/client/arazzo/document.ts';
import { isArazzoFile, runDocument } from '../tools/client/arazzo/run-document.ts';
import { runScenario } from '../tools/client/world.ts';
import type { Connection } from './connection.ts';
import { type RunOptions, ScenarioFailedError, type ScenarioResult } from './types.ts';

/**
 * Runs a built-in scenario, given by its name, or an Arazzo document, given by its file.
 *
 * @throws ScenarioFailedError
 */
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
