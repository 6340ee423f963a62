import type { SchemaMigration } from './schema-migration.ts';

export const fiatAccounts: SchemaMigration = {
  name: '0013-fiat-accounts',
  postgres: `
create table "external_fiat_accounts" ("id" text not null, "app_id" text not null, "entity_type" text not null, "entity_id" text not null, "provider" text not null, "environment" text not null, "provider_account_id" text not null, "customer_id" text not null, "account_type" text not null, "currency" text not null, "account_owner_name" text not null, "bank_name" text null, "last_four" text null, "fingerprint" text not null, "created_at_ms" bigint not null, "deleted_at_ms" bigint null, primary key ("id"));
create index "external_fiat_accounts_by_age" on "external_fiat_accounts" ("entity_id", "created_at_ms", "id");
create index "external_fiat_accounts_by_fingerprint" on "external_fiat_accounts" ("entity_id", "fingerprint");
create unique index "external_fiat_accounts_live" on "external_fiat_accounts" ("app_id", "entity_id", "provider", "environment", "fingerprint") where deleted_at_ms is null;

create table "fiat_deposits" ("id" text not null, "account_id" text not null, "provider" text not null, "environment" text not null, "provider_deposit_id" text not null, "state" text not null, "amount" text not null, "currency" text not null, "payment_rail" text null, "sender_name" text null, "transaction_hash" text null, "raw_output" text null, "created_at_ms" bigint not null, "next_check_at_ms" bigint null, primary key ("id"));
create index "fiat_deposits_due" on "fiat_deposits" ("next_check_at_ms") where next_check_at_ms is not null;
create index "fiat_deposits_by_transaction" on "fiat_deposits" ("transaction_hash") where transaction_hash is not null;
alter table "fiat_deposits" add constraint "fiat_deposits_provider" unique ("provider", "environment", "provider_deposit_id");

create table "fiat_deposit_accounts" ("id" text not null, "app_id" text not null, "wallet_id" text not null, "provider" text not null, "environment" text not null, "customer_id" text not null, "virtual_account_id" text not null, "status" text not null, "currency" text not null, "payment_rails" text not null, "asset" text not null, "chain" text not null, "created_at_ms" bigint not null, "next_check_at_ms" bigint null, primary key ("id"));
create index "fiat_deposit_accounts_by_age" on "fiat_deposit_accounts" ("wallet_id", "created_at_ms", "id");
create index "fiat_deposit_accounts_due" on "fiat_deposit_accounts" ("next_check_at_ms") where next_check_at_ms is not null;
create unique index "fiat_deposit_accounts_activated" on "fiat_deposit_accounts" ("wallet_id", "provider", "environment", "currency", "asset", "chain") where status = 'activated';
alter table "fiat_deposit_accounts" add constraint "fiat_deposit_accounts_virtual" unique ("provider", "environment", "virtual_account_id");

create table "fiat_deposit_instructions" ("id" text not null, "app_id" text not null, "sealed_secret" bytea not null, "wrapped_data_key" bytea not null, "master_key_id" text not null, primary key ("id"));
create index "fiat_deposit_instructions_by_master_key" on "fiat_deposit_instructions" ("master_key_id");

create table "fiat_positions" ("provider" text not null, "environment" text not null, "position" text not null, primary key ("provider", "environment"));

create table "fingerprint_keys" ("id" text not null, "app_id" text not null, "sealed_secret" bytea not null, "wrapped_data_key" bytea not null, "master_key_id" text not null, primary key ("id"));
create index "fingerprint_keys_by_master_key" on "fingerprint_keys" ("master_key_id");
alter table "fingerprint_keys" add constraint "fingerprint_keys_app" unique ("app_id");
`,
  sqlite: `
create table \`external_fiat_accounts\` (\`id\` text not null primary key, \`app_id\` text not null, \`entity_type\` text not null, \`entity_id\` text not null, \`provider\` text not null, \`environment\` text not null, \`provider_account_id\` text not null, \`customer_id\` text not null, \`account_type\` text not null, \`currency\` text not null, \`account_owner_name\` text not null, \`bank_name\` text null, \`last_four\` text null, \`fingerprint\` text not null, \`created_at_ms\` bigint not null, \`deleted_at_ms\` bigint null);
create index \`external_fiat_accounts_by_age\` on \`external_fiat_accounts\` (\`entity_id\`, \`created_at_ms\`, \`id\`);
create index \`external_fiat_accounts_by_fingerprint\` on \`external_fiat_accounts\` (\`entity_id\`, \`fingerprint\`);
create unique index \`external_fiat_accounts_live\` on \`external_fiat_accounts\` (\`app_id\`, \`entity_id\`, \`provider\`, \`environment\`, \`fingerprint\`) where deleted_at_ms is null;

create table \`fiat_deposits\` (\`id\` text not null primary key, \`account_id\` text not null, \`provider\` text not null, \`environment\` text not null, \`provider_deposit_id\` text not null, \`state\` text not null, \`amount\` text not null, \`currency\` text not null, \`payment_rail\` text null, \`sender_name\` text null, \`transaction_hash\` text null, \`raw_output\` text null, \`created_at_ms\` bigint not null, \`next_check_at_ms\` bigint null);
create index \`fiat_deposits_due\` on \`fiat_deposits\` (\`next_check_at_ms\`) where next_check_at_ms is not null;
create index \`fiat_deposits_by_transaction\` on \`fiat_deposits\` (\`transaction_hash\`) where transaction_hash is not null;
create unique index \`fiat_deposits_provider\` on \`fiat_deposits\` (\`provider\`, \`environment\`, \`provider_deposit_id\`);

create table \`fiat_deposit_accounts\` (\`id\` text not null primary key, \`app_id\` text not null, \`wallet_id\` text not null, \`provider\` text not null, \`environment\` text not null, \`customer_id\` text not null, \`virtual_account_id\` text not null, \`status\` text not null, \`currency\` text not null, \`payment_rails\` text not null, \`asset\` text not null, \`chain\` text not null, \`created_at_ms\` bigint not null, \`next_check_at_ms\` bigint null);
create index \`fiat_deposit_accounts_by_age\` on \`fiat_deposit_accounts\` (\`wallet_id\`, \`created_at_ms\`, \`id\`);
create index \`fiat_deposit_accounts_due\` on \`fiat_deposit_accounts\` (\`next_check_at_ms\`) where next_check_at_ms is not null;
create unique index \`fiat_deposit_accounts_activated\` on \`fiat_deposit_accounts\` (\`wallet_id\`, \`provider\`, \`environment\`, \`currency\`, \`asset\`, \`chain\`) where status = 'activated';
create unique index \`fiat_deposit_accounts_virtual\` on \`fiat_deposit_accounts\` (\`provider\`, \`environment\`, \`virtual_account_id\`);

create table \`fiat_deposit_instructions\` (\`id\` text not null primary key, \`app_id\` text not null, \`sealed_secret\` blob not null, \`wrapped_data_key\` blob not null, \`master_key_id\` text not null);
create index \`fiat_deposit_instructions_by_master_key\` on \`fiat_deposit_instructions\` (\`master_key_id\`);

create table \`fiat_positions\` (\`provider\` text not null, \`environment\` text not null, \`position\` text not null, primary key (\`provider\`, \`environment\`));

create table \`fingerprint_keys\` (\`id\` text not null primary key, \`app_id\` text not null, \`sealed_secret\` blob not null, \`wrapped_data_key\` blob not null, \`master_key_id\` text not null);
create index \`fingerprint_keys_by_master_key\` on \`fingerprint_keys\` (\`master_key_id\`);
create unique index \`fingerprint_keys_app\` on \`fingerprint_keys\` (\`app_id\`);
`,
};
