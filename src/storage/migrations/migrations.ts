import { initial } from './0001-initial.ts';
import type { SchemaMigration } from './schema-migration.ts';

/** Every migration, oldest first. A released one is never changed: test/house/released-migrations.txt. */
export const migrations: readonly SchemaMigration[] = [initial];
