import type { AppDirectory } from '../../../ports/app-directory.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { Orm } from '../../../storage/open-database.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { AppSettings } from './app.entity.ts';
import { type AppSecretHash, secretsInForce } from './app-secret.ts';
import { readAppSettings } from './app-settings.ts';

// HOT: every request with a user's token looks up its app; the entity manager takes twelve times as long on SQLite.
const selectApp = prepareQuery<{ id: string }, { id: string; secret_hashes: string; settings: string }>(
  (database, { id }) =>
    database.selectFrom('apps').select(['id', 'secret_hashes', 'settings']).where('id', '=', id),
);

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
      const {
        rows: [app],
      } = await selectApp(orm.em, { id: appId });
      if (app === undefined) return undefined;
      const secretHashes = secretsInForce(JSON.parse(app.secret_hashes) as AppSecretHash[], clock.now()).map(
        ({ hash }) => Buffer.from(hash, 'hex'),
      );
      const settings = readAppSettings(JSON.parse(app.settings) as AppSettings);
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
