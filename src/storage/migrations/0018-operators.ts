import type { SchemaMigration } from './schema-migration.ts';

export const operators: SchemaMigration = {
  name: '0018-operators',
  postgres: `
create table "operators" ("id" text not null, "app_id" text not null, "name" text not null, "role" text not null, "secret_hash" text null, "created_at_ms" bigint not null, "removed_at_ms" bigint null, primary key ("id"));
create index "operators_by_app" on "operators" ("app_id", "created_at_ms", "id");
alter table "operators" add constraint "operators_secret_hash" unique ("secret_hash");

create table "operator_records" ("sequence" bigserial primary key, "app_id" text not null, "operator_id" text null, "operator_name" text null, "operator_role" text null, "origin" text not null, "action" text not null, "kind" text not null, "targets" text not null, "result" text not null, "at_ms" bigint not null);
create index "operator_records_by_app" on "operator_records" ("app_id", "sequence");
create index "operator_records_of_changes" on "operator_records" ("app_id", "kind", "sequence");
create index "operator_records_by_operator" on "operator_records" ("operator_id", "kind", "sequence");
`,
  sqlite: `
create table \`operators\` (\`id\` text not null primary key, \`app_id\` text not null, \`name\` text not null, \`role\` text not null, \`secret_hash\` text null, \`created_at_ms\` bigint not null, \`removed_at_ms\` bigint null);
create index \`operators_by_app\` on \`operators\` (\`app_id\`, \`created_at_ms\`, \`id\`);
create unique index \`operators_secret_hash\` on \`operators\` (\`secret_hash\`);

create table \`operator_records\` (\`sequence\` integer not null primary key autoincrement, \`app_id\` text not null, \`operator_id\` text null, \`operator_name\` text null, \`operator_role\` text null, \`origin\` text not null, \`action\` text not null, \`kind\` text not null, \`targets\` text not null, \`result\` text not null, \`at_ms\` bigint not null);
create index \`operator_records_by_app\` on \`operator_records\` (\`app_id\`, \`sequence\`);
create index \`operator_records_of_changes\` on \`operator_records\` (\`app_id\`, \`kind\`, \`sequence\`);
create index \`operator_records_by_operator\` on \`operator_records\` (\`operator_id\`, \`kind\`, \`sequence\`);
`,
};
