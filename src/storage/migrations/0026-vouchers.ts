import type { SchemaMigration } from './schema-migration.ts';

export const vouchers: SchemaMigration = {
  name: '0026-vouchers',
  postgres: `
create table "voucher_keys" ("id" text not null, "app_id" text not null, "name" text not null, "sealed_secret" bytea not null, "wrapped_data_key" bytea not null, "master_key_id" text not null, primary key ("id"));
create index "voucher_keys_by_master_key" on "voucher_keys" ("master_key_id");
alter table "voucher_keys" add constraint "voucher_keys_app" unique ("app_id");
alter table "key_quorums" add "voucher" text null;
alter table "key_quorum_members" add "subject" text null;
alter table "user_keys" add "voucher" text null;
`,
  sqlite: `
create table \`voucher_keys\` (\`id\` text not null primary key, \`app_id\` text not null, \`name\` text not null, \`sealed_secret\` blob not null, \`wrapped_data_key\` blob not null, \`master_key_id\` text not null);
create index \`voucher_keys_by_master_key\` on \`voucher_keys\` (\`master_key_id\`);
create unique index \`voucher_keys_app\` on \`voucher_keys\` (\`app_id\`);
alter table \`key_quorums\` add column \`voucher\` text null;
alter table \`key_quorum_members\` add column \`subject\` text null;
alter table \`user_keys\` add column \`voucher\` text null;
`,
};
