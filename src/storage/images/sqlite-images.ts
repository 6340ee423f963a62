import type { Database as SqliteHandle } from 'better-sqlite3';
import type { DatabaseImages } from '../open-database.ts';
import { replaceHandle, type SqliteSlot } from '../sqlite/sqlite-dialect.ts';
import { imageOf, replaceContent } from './sqlite-image.ts';

/** Where a database is: in memory, where `open` makes another one, or in a file. */
type Place = { readonly open: (image: Buffer) => SqliteHandle } | { readonly file: string };

/** Saves and replaces the content of a database that is in use. Waits until no transaction is open. */
export function sqliteImages(slot: SqliteSlot, place: Place): DatabaseImages {
  const alone = async <T>(work: () => T | Promise<T>): Promise<T> => {
    await slot.turnstile.enter();
    try {
      slot.commits.flush();
      return await work();
    } finally {
      slot.turnstile.leave();
    }
  };
  return {
    save: () => alone(() => imageOf(slot.handle)),
    load: (image) =>
      alone(async () => {
        if ('file' in place) await replaceContent(place.file, image);
        else replaceHandle(slot, place.open(image)).close();
      }),
  };
}
