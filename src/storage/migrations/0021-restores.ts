import type { SchemaMigration } from './schema-migration.ts';

export const restores: SchemaMigration = {
  name: '0021-restores',
  postgres: `
create table "accepted_accounts" ("caip2" text not null, "address" text not null, "accepted_at_ms" bigint not null, "accepted_by" text not null, primary key ("caip2", "address"));

create table "database_identity" ("id" text not null, "cluster" text not null, "timeline" bigint not null, primary key ("id"));

create table "restores" ("id" text not null, "cause" text not null, "noticed_at_ms" bigint not null, "newest_record_at_ms" bigint null, "released_at_ms" bigint null, "are_all_accepted" int not null default 0, primary key ("id"));
create index "restores_by_age" on "restores" ("noticed_at_ms");
`,
  sqlite: `
create table \`accepted_accounts\` (\`caip2\` text not null, \`address\` text not null, \`accepted_at_ms\` bigint not null, \`accepted_by\` text not null, primary key (\`caip2\`, \`address\`));

create table \`database_identity\` (\`id\` text not null primary key, \`cluster\` text not null, \`timeline\` bigint not null);

create table \`restores\` (\`id\` text not null primary key, \`cause\` text not null, \`noticed_at_ms\` bigint not null, \`newest_record_at_ms\` bigint null, \`released_at_ms\` bigint null, \`are_all_accepted\` integer not null default 0);
create index \`restores_by_age\` on \`restores\` (\`noticed_at_ms\`);
`,
};
