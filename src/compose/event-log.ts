import { generateEventLogId } from '../adapters/sandbox-folder.ts';
import type { Entropy } from '../ports/runtime.ts';
import type { SandboxMemory } from './sandbox-memory.ts';

/** The name of a sandbox's event log. It changes when the log is replaced, so that readers notice. */
export interface EventLog {
  name(): string;
  /** The sequence of the last event that the log already had when it got this name. */
  beginsAfter(): number;
  /** Call after the log was replaced. */
  restart(beginsAfter: number): void;
}

/** Opens the event log of a sandbox. */
export function openEventLog(memory: SandboxMemory, entropy: Entropy): EventLog {
  return {
    name: () => memory.state.eventLog,
    beginsAfter: () => memory.state.eventLogBeginsAfter,
    restart: (eventLogBeginsAfter) =>
      memory.change({ eventLog: generateEventLogId(entropy), eventLogBeginsAfter }),
  };
}
