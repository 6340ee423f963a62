import { type Stats, statSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { StartError } from '../../start-error.ts';
import type { SignerLink } from './signer-vault.ts';

/** Who may listen on the socket. */
export interface SocketOwner {
  readonly path: string;
  /** The user who must own the socket and its folder. */
  readonly uid: number;
}

/** Connects to a signer that listens on a socket. */
export function connectToSocket(owner: SocketOwner): SignerLink {
  let socket: Socket | undefined;
  return {
    stream: (async () => {
      requireOwned(owner);
      socket = connect(owner.path);
      const opened = socket;
      await new Promise<void>((resolve, reject) => {
        opened.once('connect', resolve);
        opened.once('error', (cause) =>
          reject(new StartError(`the signer at \`${owner.path}\` cannot be reached`, { cause })),
        );
      });
      return opened;
    })(),
    end: async () => void socket?.destroy(),
  };
}

const OTHERS = 0o007;
const GROUP_WRITES = 0o020;

/**
 * A user who can replace the socket can pretend to be the signer, and is then asked to seal secrets and to draw keys.
 *
 * @throws StartError
 */
function requireOwned({ path, uid }: SocketOwner): void {
  const folder = dirname(path);
  const [ofFolder, ofSocket] = [statOf(folder), statOf(path)];
  for (const [name, { uid: owner }] of [
    [folder, ofFolder],
    [path, ofSocket],
  ] as const) {
    if (owner !== uid) throw new StartError(`\`${name}\`: expected user ${uid} as its owner, got ${owner}`);
  }
  if ((ofFolder.mode & (OTHERS | GROUP_WRITES)) !== 0) {
    const mode = (ofFolder.mode & 0o777).toString(8);
    throw new StartError(
      `\`${folder}\`: expected mode 700, or 750 for a signer of another user, got ${mode}`,
    );
  }
  if (!ofSocket.isSocket()) throw new StartError(`\`${path}\`: expected a socket`);
}

function statOf(path: string): Stats {
  try {
    return statSync(path);
  } catch (cause) {
    throw new StartError(`no signer listens at \`${path}\``, { cause });
  }
}
