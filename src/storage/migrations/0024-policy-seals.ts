import type { SchemaMigration } from './schema-migration.ts';

export const policySeals: SchemaMigration = {
  name: '0024-policy-seals',
  postgres: `
create table "policy_seals" ("id" text not null, "app_id" text not null, "content" text not null, "name" text not null, "sealed_secret" bytea not null, "wrapped_data_key" bytea not null, "master_key_id" text not null, primary key ("id"));
create index "policy_seals_by_master_key" on "policy_seals" ("master_key_id");
`,
  sqlite: `
create table \`policy_seals\` (\`id\` text not null primary key, \`app_id\` text not null, \`content\` text not null, \`name\` text not null, \`sealed_secret\` blob not null, \`wrapped_data_key\` blob not null, \`master_key_id\` text not null);
create index \`policy_seals_by_master_key\` on \`policy_seals\` (\`master_key_id\`);
`,
};
