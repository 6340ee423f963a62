import type { AppDirectory } from '../../../ports/app-directory.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { Orm } from '../../../storage/open-database.ts';
import { secretsInForce } from './app-secret.ts';
import { readAppSettings } from './app-settings.ts';
import { getApp } from './find-app.ts';

/** A directory that is notified of changes. */
export interface StoredAppDirectory extends AppDirectory {
  /** Call after this process has changed an app or one of its secrets. */
  noteChange(): void;
}

/** A directory of the stored apps. It does not cache; callers may. */
export function createAppDirectory(orm: Orm, clock: Clock): StoredAppDirectory {
  let generation = 0;
  return {
    async find(appId) {
      const app = await getApp(orm.em.fork(), appId);
      if (app === undefined) return undefined;
      const secretHashes = secretsInForce(app.secretHashes, clock.now()).map(({ hash }) =>
        Buffer.from(hash, 'hex'),
      );
      const settings = readAppSettings(app.settings);
      return {
        id: app.id,
        secretHashes,
        allowedOrigins: settings.allowed_origins,
        admitsPublicClients: settings.device_flow.public_clients,
      };
    },
    generation: () => generation,
    noteChange: () => {
      generation += 1;
    },
  };
}
