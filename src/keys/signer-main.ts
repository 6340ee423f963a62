import { Socket } from 'node:net';
import { parseArgs } from 'node:util';
import { ConfigError, readSignerConfig } from '../config/config.ts';
import { sendRefusal } from './serve-connection.ts';
import { runOnSocket, serveChannel, servedKeyStore } from './serve-signer.ts';
import { CHANNEL } from './spawn-signer.ts';

// The entry point of the signer, the only process with the master keys. `custos serve` starts it as a child and talks
// to it over a channel. `custos signer` replaces its own process with the signer, which then listens on a socket.

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
  // A terminal or a service manager signals all processes of the group. Ignore the signals, because the server still
  // needs this process for its last requests. It ends this process afterwards.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
  const channel = new Socket({ fd: CHANNEL });
  try {
    serveChannel(channel, servedKeyStore(readSignerConfig()));
  } catch (error) {
    const faults =
      error instanceof ConfigError ? error.faults : [`the signer failed: ${(error as Error).name}`];
    sendRefusal(channel, faults, () => process.exit(1));
  }
}
