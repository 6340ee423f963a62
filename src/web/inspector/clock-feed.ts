import { signal } from '@preact/signals';
import type { SandboxClock } from '../../sandbox/generated/schemas.ts';
import { control } from './control.ts';

const READ_MS = 2000;

/** The clock of the sandbox. Undefined until it is read for the first time. */
export const clock = signal<SandboxClock | undefined>(undefined);
/** The reason why the clock cannot be read. Empty while the sandbox responds. */
export const absence = signal('');

/** The number of fault rules that may still meet a request. */
export const activeFaults = signal(0);

async function readClock(): Promise<void> {
  try {
    const [now, faults] = await Promise.all([control('getClock', {}), control('listFaults', {})]);
    clock.value = now;
    activeFaults.value = faults.data.filter(({ count, hits }) => count === null || hits < count).length;
    absence.value = '';
  } catch (error) {
    absence.value = (error as Error).message;
  }
}

/** Reads the clock and the fault rules every two seconds while the window is visible, for as long as it is open. */
export function followClock(): void {
  void readClock();
  setInterval(() => {
    if (!document.hidden) void readClock();
  }, READ_MS);
}
