import type { SchemaMigration } from './schema-migration.ts';

export const keyQuorumSeals: SchemaMigration = {
  name: '0025-key-quorum-seals',
  postgres: `
create table "key_quorum_seals" ("id" text not null, "app_id" text not null, "digest" text not null, "sealed_secret" bytea not null, "wrapped_data_key" bytea not null, "master_key_id" text not null, primary key ("id"));
create index "key_quorum_seals_by_master_key" on "key_quorum_seals" ("master_key_id");
`,
  sqlite: `
create table \`key_quorum_seals\` (\`id\` text not null primary key, \`app_id\` text not null, \`digest\` text not null, \`sealed_secret\` blob not null, \`wrapped_data_key\` blob not null, \`master_key_id\` text not null);
create index \`key_quorum_seals_by_master_key\` on \`key_quorum_seals\` (\`master_key_id\`);
`,
};
