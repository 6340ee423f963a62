import type {
  AddSandboxFaultRequest,
  RemovedSandboxFaults,
  SandboxFault,
  SandboxFaults,
} from '../sandbox/generated/schemas.ts';
import type { SandboxClient } from './sandbox-client.ts';

export type { AddSandboxFaultRequest, SandboxFault };

/** Adds a fault rule. */
export function addFault(client: SandboxClient, body: AddSandboxFaultRequest): Promise<SandboxFault> {
  return client.call<SandboxFault>('POST', '/faults', { body });
}

/** The fault rules, in the order in which they are tried. */
export async function listFaults(client: SandboxClient): Promise<readonly SandboxFault[]> {
  return (await client.call<SandboxFaults>('GET', '/faults')).data;
}

/** Removes the rules with these ids, all of them without ids. Returns how many were removed. */
export async function removeFaults(client: SandboxClient, ids: readonly string[]): Promise<number> {
  if (ids.length === 0) return (await client.call<RemovedSandboxFaults>('DELETE', '/faults')).removed;
  for (const id of ids) await client.call<SandboxFault>('DELETE', `/faults/${encodeURIComponent(id)}`);
  return ids.length;
}
