import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';

const binaries = ['17', '16', '15'].map((version) => `/usr/lib/postgresql/${version}/bin`).find(existsSync);

/** Whether Debian's PostgreSQL, with the programs for replicas and backups, is installed and this user can start it. */
export const hasDebianPostgres = binaries !== undefined && process.getuid?.() === 0;

/** A PostgreSQL server that the test creates and starts itself. */
export interface PostgresNode {
  readonly port: number;
  readonly folder: string;
}

/** Runs a program of PostgreSQL as the server's user, because it starts only as this user. */
export function asPostgres(program: string, ...args: string[]): void {
  execFileSync('runuser', ['-u', 'postgres', '--', join(binaries!, program), ...args], { stdio: 'ignore' });
}

/** Works like `asPostgres`, while the server of the test, which is in the same process, goes on. */
export async function asPostgresMeanwhile(program: string, ...args: string[]): Promise<void> {
  const child = spawn('runuser', ['-u', 'postgres', '--', join(binaries!, program), ...args], {
    stdio: 'ignore',
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`${program} ended with ${code}`);
}

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'custos-postgres-'));
  execFileSync('chown', ['postgres', folder]);
  return folder;
}

/** Creates a server that is initialized but not started. */
export async function makeNode(): Promise<PostgresNode> {
  const node = { port: await freePort(), folder: newFolder() };
  asPostgres('initdb', '--no-sync', '-D', node.folder, '--auth=trust', '--encoding=UTF8', '--no-locale');
  return node;
}

/** Copies the folder of a running server to a new server. */
export async function copyNode({ port }: PostgresNode, ...args: string[]): Promise<PostgresNode> {
  const copy = { port: await freePort(), folder: newFolder() };
  const from = ['-h', '127.0.0.1', '-p', String(port), '-U', 'postgres'];
  asPostgres('pg_basebackup', ...from, '-D', copy.folder, '-X', 'stream', '-c', 'fast', ...args);
  return copy;
}

export function startNode({ folder, port }: PostgresNode, ...settings: string[]): void {
  const all = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'hot_standby=on', ...settings];
  const options = [`-p ${port}`, ...all.map((setting) => `-c ${setting}`)].join(' ');
  asPostgres('pg_ctl', '-D', folder, '-w', '-l', join(folder, 'log'), '-o', options, 'start');
}

/** Stops the server immediately, like a power failure. A stopped server stays stopped. */
export function stopNode({ folder }: PostgresNode): void {
  try {
    asPostgres('pg_ctl', '-D', folder, '-m', 'immediate', 'stop');
  } catch {
    // The server was not running.
  }
}

export async function askNode(
  { port }: PostgresNode,
  text: string,
  database = 'postgres',
): Promise<Record<string, unknown>[]> {
  const client = new Client({ host: '127.0.0.1', port, user: 'postgres', database });
  await client.connect();
  try {
    return (await client.query(text)).rows as Record<string, unknown>[];
  } finally {
    await client.end();
  }
}

export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
