import type { SandboxScenario, SandboxScenarioRun, SandboxScenarios } from '../sandbox/generated/schemas.ts';
import type { SandboxClient } from './sandbox-client.ts';

export type { SandboxScenarioRun };

/** The scenarios that `runScenario` runs. */
export async function listScenarios(client: SandboxClient): Promise<readonly SandboxScenario[]> {
  return (await client.call<SandboxScenarios>('GET', '/scenarios')).data;
}

/** Runs a scenario in a running sandbox. */
export function runScenario(client: SandboxClient, name: string): Promise<SandboxScenarioRun> {
  return client.call<SandboxScenarioRun>('POST', `/scenarios/${encodeURIComponent(name)}`);
}
