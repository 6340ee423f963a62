import { generateEventLogId, type SandboxState, writeSandboxState } from '../adapters/sandbox-folder.ts';
import type { Entropy } from '../ports/entropy.ts';

/** The name of a sandbox's log of events, by which readers notice that the log began anew. */
export interface EventLog {
  name(): string;
  /** To be called when the log was emptied. */
  beginAnew(): void;
}

/** The log of a sandbox that remembers in `folder`; undefined: it forgets with the process. */
export function openEventLog(memory: SandboxState, folder: string | undefined, entropy: Entropy): EventLog {
  let current = memory;
  return {
    name: () => current.eventLog,
    beginAnew() {
      current = { ...current, eventLog: generateEventLogId(entropy) };
      if (folder !== undefined) writeSandboxState(folder, current);
    },
  };
}
