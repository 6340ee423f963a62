import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import type { Work } from './handlers/work.ts';

/** The options of a server in this folder. */
export interface OwnOptions {
  readonly port: number;
  /** `stateless` or `stored`. */
  readonly work: string;
}

export function readOwnOptions(): OwnOptions {
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: '0' },
      work: { type: 'string', default: 'stateless' },
    },
  });
  return { port: Number(values.port), work: values.work };
}

/** The requested work. Loads only what it needs. */
export async function chooseWork({ work }: OwnOptions): Promise<Work> {
  if (work === 'stored') return (await import('./handlers/stored-work.ts')).storedWork();
  return (await import('./handlers/work.ts')).statelessWork;
}

/** Reports the address of this process to the bench. The process then ends with the bench. */
export function announce(origin: string): void {
  if (process.send === undefined) return;
  process.send({ origin });
  process.on('disconnect', () => process.exit(0));
}

/** Listens on loopback and announces it. */
export function listenAndAnnounce(server: Server, port: number): void {
  server.listen(port, '127.0.0.1', () => {
    announce(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
  process.once('SIGTERM', () => process.exit(0));
}
