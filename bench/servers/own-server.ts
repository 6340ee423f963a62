import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import type { Work } from './work.ts';

/** How one of the servers in this folder was asked to run. */
export interface OwnOptions {
  readonly port: number;
  /** `stateless` or `stored`. */
  readonly work: string;
  /** Check answers against the contract. */
  readonly checkResponses: boolean;
}

export function readOwnOptions(): OwnOptions {
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: '0' },
      work: { type: 'string', default: 'stateless' },
      'check-responses': { type: 'boolean', default: false },
    },
  });
  return { port: Number(values.port), work: values.work, checkResponses: values['check-responses'] };
}

/** The work that was asked for; loads what it needs only then. */
export async function chooseWork({ work }: OwnOptions): Promise<Work> {
  if (work === 'stored') return (await import('./stored-work.ts')).storedWork();
  return (await import('./work.ts')).statelessWork;
}

/** Tells the bench where this process listens, and ends with it. */
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
