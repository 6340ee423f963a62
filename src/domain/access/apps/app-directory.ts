import type { Clock } from '../../../ports/clock.ts';
import type { Orm } from '../../../storage/open-database.ts';
import { secretsInForce } from './app-secret.ts';
import { getApp } from './find-app.ts';

/** An app as the credentials check needs it. */
interface AppCredentials {
  readonly id: string;
  readonly name: string;
  /** SHA-256 of each secret in force, 32 bytes. */
  readonly secretHashes: readonly Uint8Array[];
}

/** Where the credentials check looks apps up. */
export interface AppDirectory {
  find(appId: string): Promise<AppCredentials | undefined>;
  /** Grows with every `announceChange`: what was read before may be out of date. */
  generation(): number;
  /** Called after an app or one of its secrets was changed by this process. */
  announceChange(): void;
}

/** A directory over the stored apps. It keeps nothing: whoever asks often keeps the answer for a while. */
export function createAppDirectory(orm: Orm, clock: Clock): AppDirectory {
  let generation = 0;
  return {
    async find(appId) {
      const app = await getApp(orm.em.fork(), appId);
      if (app === undefined) return undefined;
      const secretHashes = secretsInForce(app.secretHashes, clock.now()).map(({ hash }) =>
        Buffer.from(hash, 'hex'),
      );
      return { id: app.id, name: app.name, secretHashes };
    },
    generation: () => generation,
    announceChange: () => {
      generation += 1;
    },
  };
}
