import type { SchemaMigration } from './schema-migration.ts';

export const lockSecrets: SchemaMigration = {
  name: '0030-lock-secrets',
  postgres: `
create table "lock_secrets" ("id" text not null, "secret" text not null, primary key ("id"));

alter table "server_processes" add "keyed_locks" int not null default 0;
-- 244 random bits.
insert into "lock_secrets" ("id", "secret") values ('names', gen_random_uuid()::text || gen_random_uuid()::text);
`,
  sqlite: `
create table \`lock_secrets\` (\`id\` text not null primary key, \`secret\` text not null);

alter table \`server_processes\` add column \`keyed_locks\` integer not null default 0;
`,
};
