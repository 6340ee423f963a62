import type { SchemaMigration } from './schema-migration.ts';

// Unlogged: a commit waits neither for the disk nor for a standby. After a crash the table is empty, so apps have their
// full allowance again. Only PostgreSQL has several processes that count together.
//
// NOTE: servers of earlier versions count in another table, `rate_limits`, which nothing else uses.
export const rateLevels: SchemaMigration = {
  name: '0027-rate-levels',
  postgres: `
create unlogged table "rate_levels" ("key" text not null, "level" double precision not null, "per_second" double precision not null, "at" timestamptz not null, primary key ("key"));
`,
  sqlite: '',
};
