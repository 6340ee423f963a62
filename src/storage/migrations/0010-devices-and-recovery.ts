import type { SchemaMigration } from './schema-migration.ts';

export const devicesAndRecovery: SchemaMigration = {
  name: '0010-devices-and-recovery',
  postgres: `
create table "oauth_device_codes" ("id" text not null, "app_id" text not null, "user_code" text not null, "status" text not null, "user_id" text null, "interval_seconds" int not null, "polled_at_ms" bigint null, "created_at_ms" bigint not null, "expires_at_ms" bigint not null, primary key ("id"));
create index "oauth_device_codes_by_app" on "oauth_device_codes" ("app_id", "status", "expires_at_ms");
create index "oauth_device_codes_by_expiry" on "oauth_device_codes" ("expires_at_ms");
alter table "oauth_device_codes" add constraint "oauth_device_codes_user_code" unique ("user_code");

create table "oauth_grants" ("id" text not null, "app_id" text not null, "user_id" text not null, "created_at_ms" bigint not null, "last_used_at_ms" bigint not null, "revoked_at_ms" bigint null, primary key ("id"));
create index "oauth_grants_by_app" on "oauth_grants" ("app_id", "created_at_ms", "id");
create index "oauth_grants_by_user" on "oauth_grants" ("user_id", "created_at_ms", "id");
create index "oauth_grants_by_use" on "oauth_grants" ("last_used_at_ms");

create table "oauth_refresh_tokens" ("id" text not null, "grant_id" text not null, "created_at_ms" bigint not null, "used_at_ms" bigint null, primary key ("id"));
create index "oauth_refresh_tokens_by_grant" on "oauth_refresh_tokens" ("grant_id");
create index "oauth_refresh_tokens_by_use" on "oauth_refresh_tokens" ("used_at_ms") where used_at_ms is not null;
create unique index "oauth_refresh_tokens_live" on "oauth_refresh_tokens" ("grant_id") where used_at_ms is null;

create table "oauth_wrong_codes" ("id" text not null, "app_id" text not null, "user_id" text not null, "at_ms" bigint not null, primary key ("id"));
create index "oauth_wrong_codes_by_app" on "oauth_wrong_codes" ("app_id", "at_ms");
create index "oauth_wrong_codes_by_user" on "oauth_wrong_codes" ("user_id", "at_ms");
create index "oauth_wrong_codes_by_age" on "oauth_wrong_codes" ("at_ms");

create table "wallet_recoveries" ("wallet_id" text not null, "app_id" text not null, "user_id" text not null, "recovered_at_ms" bigint null, primary key ("wallet_id"));
create index "wallet_recoveries_waiting" on "wallet_recoveries" ("user_id") where recovered_at_ms is null;

alter table "user_keys" add "session_id" text null;
create index "user_keys_by_session" on "user_keys" ("session_id") where session_id is not null;
`,
  sqlite: `
create table \`oauth_device_codes\` (\`id\` text not null primary key, \`app_id\` text not null, \`user_code\` text not null, \`status\` text not null, \`user_id\` text null, \`interval_seconds\` integer not null, \`polled_at_ms\` bigint null, \`created_at_ms\` bigint not null, \`expires_at_ms\` bigint not null);
create index \`oauth_device_codes_by_app\` on \`oauth_device_codes\` (\`app_id\`, \`status\`, \`expires_at_ms\`);
create index \`oauth_device_codes_by_expiry\` on \`oauth_device_codes\` (\`expires_at_ms\`);
create unique index \`oauth_device_codes_user_code\` on \`oauth_device_codes\` (\`user_code\`);

create table \`oauth_grants\` (\`id\` text not null primary key, \`app_id\` text not null, \`user_id\` text not null, \`created_at_ms\` bigint not null, \`last_used_at_ms\` bigint not null, \`revoked_at_ms\` bigint null);
create index \`oauth_grants_by_app\` on \`oauth_grants\` (\`app_id\`, \`created_at_ms\`, \`id\`);
create index \`oauth_grants_by_user\` on \`oauth_grants\` (\`user_id\`, \`created_at_ms\`, \`id\`);
create index \`oauth_grants_by_use\` on \`oauth_grants\` (\`last_used_at_ms\`);

create table \`oauth_refresh_tokens\` (\`id\` text not null primary key, \`grant_id\` text not null, \`created_at_ms\` bigint not null, \`used_at_ms\` bigint null);
create index \`oauth_refresh_tokens_by_grant\` on \`oauth_refresh_tokens\` (\`grant_id\`);
create index \`oauth_refresh_tokens_by_use\` on \`oauth_refresh_tokens\` (\`used_at_ms\`) where used_at_ms is not null;
create unique index \`oauth_refresh_tokens_live\` on \`oauth_refresh_tokens\` (\`grant_id\`) where used_at_ms is null;

create table \`oauth_wrong_codes\` (\`id\` text not null primary key, \`app_id\` text not null, \`user_id\` text not null, \`at_ms\` bigint not null);
create index \`oauth_wrong_codes_by_app\` on \`oauth_wrong_codes\` (\`app_id\`, \`at_ms\`);
create index \`oauth_wrong_codes_by_user\` on \`oauth_wrong_codes\` (\`user_id\`, \`at_ms\`);
create index \`oauth_wrong_codes_by_age\` on \`oauth_wrong_codes\` (\`at_ms\`);

create table \`wallet_recoveries\` (\`wallet_id\` text not null primary key, \`app_id\` text not null, \`user_id\` text not null, \`recovered_at_ms\` bigint null);
create index \`wallet_recoveries_waiting\` on \`wallet_recoveries\` (\`user_id\`) where recovered_at_ms is null;

alter table \`user_keys\` add column \`session_id\` text null;
create index \`user_keys_by_session\` on \`user_keys\` (\`session_id\`) where session_id is not null;
`,
};
