import { createServer } from 'node:net';

/**
 * Listens for a moment. 0 is any free port.
 *
 * @throws the error of the system: EADDRINUSE, EACCES, EADDRNOTAVAIL.
 */
export function requireFreePort(host: string, port: number): Promise<void> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => server.close(() => resolve()));
  });
}
