import type { SchemaMigration } from './schema-migration.ts';

// The records of operators' actions become the first records of the audit log.
export const auditLog: SchemaMigration = {
  name: '0020-audit-log',
  postgres: `
create table "audit_checkpoints" ("size" bigint not null, "root" text not null, "note" text null, "created_at_ms" bigint not null, primary key ("size"));
create index "audit_checkpoints_by_age" on "audit_checkpoints" ("created_at_ms");

create table "audit_keys" ("id" text not null, "app_id" text not null, "origin" text not null, "public_key" text null, "sealed_secret" bytea not null, "wrapped_data_key" bytea not null, "master_key_id" text not null, primary key ("id"));
create index "audit_keys_by_master_key" on "audit_keys" ("master_key_id");

create table "audit_records" ("leaf_index" bigint not null, "pending_id" bigint not null, "app_id" text null, "origin" text null, "recorded_at_ms" bigint not null, "entry" text not null, primary key ("leaf_index"));
create index "audit_records_of_operators" on "audit_records" ("app_id", "leaf_index") where origin is not null;

create table "audit_tiles" ("level" int not null, "tile_index" bigint not null, "hashes" bytea not null, primary key ("level", "tile_index"));

create table "audit_pending" ("id" bigserial primary key, "app_id" text null, "origin" text null, "recorded_at_ms" bigint not null, "entry" text not null);

insert into "audit_pending" ("app_id", "origin", "recorded_at_ms", "entry")
select "app_id", "origin", "at_ms", json_strip_nulls(json_build_object('app_id', "app_id", 'at_ms', "at_ms", 'by', json_build_object('kind', 'operator', 'operator_id', "operator_id", 'origin', "origin", 'role', "operator_role"), 'code', nullif("result", 'done'), 'decision', case "result" when 'operator_role_required' then 'deny' else 'allow' end, 'ids', "targets"::json, 'operation', "action", 'version', 1))::text
from "operator_records" order by "sequence";

drop table if exists "operator_records" cascade;
`,
  sqlite: `
create table \`audit_checkpoints\` (\`size\` bigint not null primary key, \`root\` text not null, \`note\` text null, \`created_at_ms\` bigint not null);
create index \`audit_checkpoints_by_age\` on \`audit_checkpoints\` (\`created_at_ms\`);

create table \`audit_keys\` (\`id\` text not null primary key, \`app_id\` text not null, \`origin\` text not null, \`public_key\` text null, \`sealed_secret\` blob not null, \`wrapped_data_key\` blob not null, \`master_key_id\` text not null);
create index \`audit_keys_by_master_key\` on \`audit_keys\` (\`master_key_id\`);

create table \`audit_records\` (\`leaf_index\` bigint not null primary key, \`pending_id\` bigint not null, \`app_id\` text null, \`origin\` text null, \`recorded_at_ms\` bigint not null, \`entry\` text not null);
create index \`audit_records_of_operators\` on \`audit_records\` (\`app_id\`, \`leaf_index\`) where origin is not null;

create table \`audit_tiles\` (\`level\` integer not null, \`tile_index\` bigint not null, \`hashes\` blob not null, primary key (\`level\`, \`tile_index\`));

create table \`audit_pending\` (\`id\` integer not null primary key autoincrement, \`app_id\` text null, \`origin\` text null, \`recorded_at_ms\` bigint not null, \`entry\` text not null);

insert into \`audit_pending\` (\`app_id\`, \`origin\`, \`recorded_at_ms\`, \`entry\`)
select \`app_id\`, \`origin\`, \`at_ms\`, json_patch('{}', json_object('app_id', \`app_id\`, 'at_ms', \`at_ms\`, 'by', json_object('kind', 'operator', 'operator_id', \`operator_id\`, 'origin', \`origin\`, 'role', \`operator_role\`), 'code', nullif(\`result\`, 'done'), 'decision', case \`result\` when 'operator_role_required' then 'deny' else 'allow' end, 'ids', json(\`targets\`), 'operation', \`action\`, 'version', 1))
from \`operator_records\` order by \`sequence\`;

drop table if exists \`operator_records\`;
`,
};
