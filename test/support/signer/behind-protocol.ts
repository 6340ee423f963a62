import { duplexPair } from 'node:stream';
import { silentLog } from '../../../src/adapters/log.ts';
import { serveConnection } from '../../../src/keys/serve-connection.ts';
import { openSignerKeyStore } from '../../../src/keys/signer-client.ts';
import type { KeyStore } from '../../../src/ports/key-store.ts';

export type Task = Parameters<KeyStore['signWithWallet']>[2];

/** A key store behind the protocol of the signer. `tamper` changes the tasks that the server sends. */
export function behindProtocol(tamper: (task: Task) => Task): (keyStore: KeyStore) => KeyStore {
  return (keyStore) => {
    const connected = openSignerKeyStore(
      () => {
        const [ours, its] = duplexPair();
        serveConnection(its, { keyStore, masterKeyIds: ['test'], report: () => undefined });
        return { stream: Promise.resolve(ours), end: async () => void ours.destroy() };
      },
      { log: silentLog },
    );
    return new Proxy(keyStore, {
      get(target, name: keyof KeyStore) {
        if (typeof target[name] !== 'function') return undefined;
        return async (...args: unknown[]) => {
          const member = (await connected).keyStore[name] as (...args: unknown[]) => unknown;
          const changed = name === 'signWithWallet' ? args.with(2, tamper(args[2] as Task)) : args;
          return member(...changed);
        };
      },
    });
  };
}
