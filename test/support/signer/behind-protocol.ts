import { duplexPair } from 'node:stream';
import { silentLog } from '../../../src/adapters/log.ts';
import { serveConnection } from '../../../src/keys/serve-connection.ts';
import { openSignerVault } from '../../../src/keys/signer-client.ts';
import type { KeyVault } from '../../../src/ports/key-vault.ts';

export type Task = Parameters<KeyVault['signWithWallet']>[2];

/** A vault behind the protocol of the signer, and what the server changes in what it has signed. */
export function behindProtocol(tamper: (task: Task) => Task): (vault: KeyVault) => KeyVault {
  return (vault) => {
    const connected = openSignerVault(
      () => {
        const [ours, its] = duplexPair();
        serveConnection(its, { vault, masterKeyIds: ['test'], report: () => undefined });
        return { stream: Promise.resolve(ours), end: async () => void ours.destroy() };
      },
      { log: silentLog },
    );
    return new Proxy(vault, {
      get(target, name: keyof KeyVault) {
        if (typeof target[name] !== 'function') return undefined;
        return async (...args: unknown[]) => {
          const member = (await connected).vault[name] as (...args: unknown[]) => unknown;
          const changed = name === 'signWithWallet' ? args.with(2, tamper(args[2] as Task)) : args;
          return member(...changed);
        };
      },
    });
  };
}
