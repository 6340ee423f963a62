import { generateEventLogId, type SandboxState, writeSandboxState } from '../adapters/sandbox-folder.ts';
import type { Entropy } from '../ports/entropy.ts';

/** The name of a sandbox's event log. It changes when the log is emptied, so that readers notice. */
export interface EventLog {
  name(): string;
  /** Call after the log was emptied. */
  restart(): void;
}

/** Opens the event log of a sandbox. `folder` contains its state; undefined for a sandbox in memory. */
export function openEventLog(memory: SandboxState, folder: string | undefined, entropy: Entropy): EventLog {
  let current = memory;
  return {
    name: () => current.eventLog,
    restart() {
      current = { ...current, eventLog: generateEventLogId(entropy) };
      if (folder !== undefined) writeSandboxState(folder, current);
    },
  };
}
