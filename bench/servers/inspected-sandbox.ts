import { monitorEventLoopDelay } from 'node:perf_hooks';
import { startSandbox } from '../../src/compose/sandbox.ts';
import { credentials } from './credentials.ts';
import { announce } from './own-server.ts';

// A sandbox that reports, on request, the delays of its event loop since the last report.

const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
const sandbox = await startSandbox({ port: 0, plainHttp: true, logLevel: 'silent', ...credentials });
process.on('message', () => {
  const milliseconds = { max: delay.max / 1e6, p99: delay.percentile(99) / 1e6 };
  delay.reset();
  process.send?.({ delay: milliseconds });
});
announce(sandbox.baseUrl.replace('https:', 'http:'));
process.once('SIGTERM', () => void sandbox.close().then(() => process.exit(0)));
