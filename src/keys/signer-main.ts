import { Socket } from 'node:net';
import { parseArgs } from 'node:util';
import { ConfigError, readSignerConfig } from '../config/config.ts';
import { sendRefusal } from './serve-connection.ts';
import { runOnSocket, serveChannel, servedVault } from './serve-signer.ts';
import { CHANNEL } from './spawn-signer.ts';

// The process that alone holds the master keys. `custos serve` starts it with a channel, which is its only way in;
// `custos signer` becomes it with a socket.

const { values: place } = parseArgs({
  options: { socket: { type: 'string' }, group: { type: 'boolean' }, state: { type: 'string' } },
});

if (place.socket === undefined) serveServer();
else {
  await runOnSocket({
    path: place.socket,
    isForGroup: place.group === true,
    stateFolder: place.state,
  });
}

function serveServer(): void {
  // Signals of a terminal or of a service manager reach all processes of a group. The server ends this one, after its own
  // last request.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
  const channel = new Socket({ fd: CHANNEL });
  try {
    serveChannel(channel, servedVault(readSignerConfig()));
  } catch (error) {
    const faults =
      error instanceof ConfigError ? error.faults : [`the signer failed: ${(error as Error).name}`];
    sendRefusal(channel, faults, () => process.exit(1));
  }
}
