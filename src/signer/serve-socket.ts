import { chmodSync, rmSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { dirname } from 'node:path';
import { type ServedVault, serveConnection } from '../adapters/signer/serve-connection.ts';
import { StartError } from '../start-error.ts';

export interface SocketPlace {
  readonly path: string;
  /** Whether the group of the folder may connect, for servers of another user. */
  readonly isForGroup: boolean;
}

/** CHOICE: more than the servers of a host have processes. */
const MAX_CONNECTIONS = 64;

/** Answers calls on a socket until `close`. Throws StartError when its folder is open to others. */
export async function serveSocket({ path, isForGroup }: SocketPlace, served: ServedVault): Promise<Server> {
  requirePrivate(dirname(path), isForGroup ? 0o750 : 0o700);
  if (statSync(path, { throwIfNoEntry: false })?.isSocket() === true) rmSync(path);
  const server = createServer((socket) => serveConnection(socket, served));
  server.maxConnections = MAX_CONNECTIONS;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(
        new StartError(`\`${path}\` cannot be listened on: ${(cause as NodeJS.ErrnoException).code}`, {
          cause,
        }),
      ),
    );
    server.listen(path, resolve);
  });
  chmodSync(path, isForGroup ? 0o660 : 0o600);
  return server;
}

function requirePrivate(folder: string, most: number): void {
  const found = statSync(folder, { throwIfNoEntry: false });
  if (found?.isDirectory() !== true)
    throw new StartError(`the folder \`${folder}\` does not exist; create it`);
  const mode = found.mode & 0o777;
  if (found.uid !== process.getuid?.())
    throw new StartError(`\`${folder}\`: expected this user as its owner`);
  if ((mode & ~most) !== 0) {
    throw new StartError(`\`${folder}\`: expected mode ${most.toString(8)}, got ${mode.toString(8)}`);
  }
}
