import { existsSync } from 'node:fs';
import { databaseOf } from '../adapters/sandbox-folder.ts';

/** The schema of a sandbox's database and the newest one of this program, as numbers of migrations. */
export interface SchemaState {
  readonly version: number;
  readonly newest: number;
}

/** Reads the schema of the database in a sandbox's folder, without changing it; undefined if there is none. */
export async function readSchemaState(folder: string): Promise<SchemaState | undefined> {
  const file = databaseOf(folder);
  if (!existsSync(file)) return undefined;
  const { readSchemaVersion } = await import('../storage/open-database.ts');
  return readSchemaVersion(file);
}
