import { existsSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

export interface LoopDelay {
  readonly maxMs: number;
  readonly p99Ms: number;
}

export const loopDelayFile = (pid: number): string => join(tmpdir(), `loop-delay-${pid}.json`);

/** How long a server that runs with `loop-delay.ts` has held its event loop since the last call. */
export async function loopDelayOf(pid: number): Promise<LoopDelay> {
  const file = loopDelayFile(pid);
  rmSync(file, { force: true });
  process.kill(pid, 'SIGUSR2');
  for (let waited = 0; !existsSync(file); waited += 20) {
    if (waited > 10_000) throw new Error(`process ${pid} did not report the delay of its event loop`);
    await wait(20);
  }
  // The file appears before its content.
  await wait(20);
  const found = JSON.parse(readFileSync(file, 'utf8')) as LoopDelay;
  rmSync(file);
  return found;
}
