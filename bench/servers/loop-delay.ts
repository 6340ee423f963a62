import { writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { loopDelayFile } from '../measure/loop-delay.ts';

// Loaded before a server: on SIGUSR2, it writes how long the event loop was held since the last signal.

const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
process.on('SIGUSR2', () => {
  const [maxMs, p99Ms] = [delay.max / 1e6, delay.percentile(99) / 1e6];
  delay.reset();
  writeFileSync(loopDelayFile(process.pid), JSON.stringify({ maxMs, p99Ms }));
});
