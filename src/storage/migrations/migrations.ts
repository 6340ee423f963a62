import { InitialMigration } from './0001-initial.ts';

/** Every migration of the PostgreSQL schema, oldest first. A released one is never changed. */
export const migrations = [{ name: '0001-initial', class: InitialMigration }];
