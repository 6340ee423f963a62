import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** The fault that a proxy applies to matching messages to the database. */
export type Fault = 'cut' | 'cut-answer' | 'silence';

export interface PostgresProxy extends AsyncDisposable {
  /** The database's URL through the proxy. */
  readonly url: string;
  /** Until `heal`, applies this fault to messages that contain `text`, and counts them. */
  break(text: string, fault: Fault): void;
  /** Silently drops all traffic of existing connections. New connections work. */
  silenceAll(): void;
  /** Closes all existing connections. */
  cutAll(): void;
  /** Stops all traffic until `thaw`, also that of new connections, as if the server was stopped with SIGSTOP. */
  freeze(): void;
  thaw(): void;
  heal(): void;
  readonly faults: number;
}

/** A TCP proxy in front of a PostgreSQL server that breaks connections at chosen points of the protocol. */
export async function startPostgresProxy(url: string): Promise<PostgresProxy> {
  const target = new URL(url);
  let broken: { text: string; fault: Fault } | undefined;
  let faults = 0;
  const open = new Set<{ near: Socket; far: Socket; silence(): void }>();
  let isFrozen = false;
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    let isSilent = false;
    const connection = {
      near,
      far,
      silence: () => {
        isSilent = true;
      },
    };
    open.add(connection);
    if (isFrozen) for (const socket of [near, far]) socket.pause();
    const cut = (): void => {
      near.destroy();
      far.destroy();
      open.delete(connection);
    };
    near.on('error', cut);
    far.on('error', cut);
    near.on('close', cut);
    far.on('close', cut);
    near.on('data', (chunk) => {
      if (isSilent) return;
      if (broken === undefined || !chunk.includes(broken.text)) {
        far.write(chunk);
        return;
      }
      faults += 1;
      if (broken.fault === 'cut') cut();
      else if (broken.fault === 'silence') isSilent = true;
      else {
        isSilent = true;
        far.once('data', cut);
        far.write(chunk);
      }
    });
    far.on('data', (chunk) => {
      if (!isSilent && !near.destroyed) near.write(chunk);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const through = new URL(url);
  through.hostname = '127.0.0.1';
  through.port = String((server.address() as AddressInfo).port);
  return {
    url: String(through),
    break(text, fault) {
      broken = { text, fault };
    },
    silenceAll() {
      for (const connection of open) connection.silence();
    },
    cutAll() {
      for (const { near } of open) near.destroy();
    },
    freeze() {
      isFrozen = true;
      for (const { near, far } of open) for (const socket of [near, far]) socket.pause();
    },
    thaw() {
      isFrozen = false;
      for (const { near, far } of open) for (const socket of [near, far]) socket.resume();
    },
    heal() {
      broken = undefined;
    },
    get faults() {
      return faults;
    },
    async [Symbol.asyncDispose]() {
      for (const { near } of open) near.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
