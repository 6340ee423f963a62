import type { SchemaMigration } from './schema-migration.ts';

export const walletAutomations: SchemaMigration = {
  name: '0009-wallet-automations',
  postgres: `
create table "wallet_automations" ("id" text not null, "app_id" text not null, "name" text null, "owner_id" text null, "is_enabled" int not null, "config" text not null, "created_at_ms" bigint not null, "updated_at_ms" bigint not null, primary key ("id"));
create index "wallet_automations_by_age" on "wallet_automations" ("app_id", "created_at_ms", "id");
create index "wallet_automations_by_owner" on "wallet_automations" ("owner_id") where owner_id is not null;

create table "wallet_automation_attachments" ("id" text not null, "wallet_id" text not null, "automation_id" text not null, "params" text null, "agreed_by_id" text null, "created_at_ms" bigint not null, "updated_at_ms" bigint not null, primary key ("id"));
create index "wallet_automation_attachments_by_automation" on "wallet_automation_attachments" ("automation_id");
alter table "wallet_automation_attachments" add constraint "wallet_automation_attachments_of_wallet" unique ("wallet_id", "automation_id");

create table "wallet_automation_executions" ("id" text not null, "app_id" text not null, "wallet_id" text not null, "attachment_id" text not null, "automation_id" text not null, "action" text not null, "agreed_by_id" text null, "caip2" text not null, "asset_address" text not null, "transfer_key" text not null, "transaction_hash" text not null, "block_number" text not null, "status" text not null, "action_id" text null, "failure_reason" text null, "created_at_ms" bigint not null, "submitted_at_ms" bigint null, "completed_at_ms" bigint null, "failed_at_ms" bigint null, "updated_at_ms" bigint not null, "next_run_at_ms" bigint null, "retry_until_ms" bigint null, primary key ("id"));
create index "wallet_automation_executions_by_age" on "wallet_automation_executions" ("app_id", "created_at_ms", "id");
create index "wallet_automation_executions_by_wallet" on "wallet_automation_executions" ("wallet_id", "created_at_ms", "id");
create index "wallet_automation_executions_due" on "wallet_automation_executions" ("next_run_at_ms", "id") where next_run_at_ms is not null;
create index "wallet_automation_executions_by_action" on "wallet_automation_executions" ("action_id") where action_id is not null;
create index "wallet_automation_executions_open" on "wallet_automation_executions" ("wallet_id", "caip2", "asset_address", "created_at_ms", "id") where status in ('pending', 'submitted');
alter table "wallet_automation_executions" add constraint "wallet_automation_executions_of_deposit" unique ("wallet_id", "caip2", "transfer_key");
`,
  sqlite: `
create table \`wallet_automations\` (\`id\` text not null primary key, \`app_id\` text not null, \`name\` text null, \`owner_id\` text null, \`is_enabled\` integer not null, \`config\` text not null, \`created_at_ms\` bigint not null, \`updated_at_ms\` bigint not null);
create index \`wallet_automations_by_age\` on \`wallet_automations\` (\`app_id\`, \`created_at_ms\`, \`id\`);
create index \`wallet_automations_by_owner\` on \`wallet_automations\` (\`owner_id\`) where owner_id is not null;

create table \`wallet_automation_attachments\` (\`id\` text not null primary key, \`wallet_id\` text not null, \`automation_id\` text not null, \`params\` text null, \`agreed_by_id\` text null, \`created_at_ms\` bigint not null, \`updated_at_ms\` bigint not null);
create index \`wallet_automation_attachments_by_automation\` on \`wallet_automation_attachments\` (\`automation_id\`);
create unique index \`wallet_automation_attachments_of_wallet\` on \`wallet_automation_attachments\` (\`wallet_id\`, \`automation_id\`);

create table \`wallet_automation_executions\` (\`id\` text not null primary key, \`app_id\` text not null, \`wallet_id\` text not null, \`attachment_id\` text not null, \`automation_id\` text not null, \`action\` text not null, \`agreed_by_id\` text null, \`caip2\` text not null, \`asset_address\` text not null, \`transfer_key\` text not null, \`transaction_hash\` text not null, \`block_number\` text not null, \`status\` text not null, \`action_id\` text null, \`failure_reason\` text null, \`created_at_ms\` bigint not null, \`submitted_at_ms\` bigint null, \`completed_at_ms\` bigint null, \`failed_at_ms\` bigint null, \`updated_at_ms\` bigint not null, \`next_run_at_ms\` bigint null, \`retry_until_ms\` bigint null);
create index \`wallet_automation_executions_by_age\` on \`wallet_automation_executions\` (\`app_id\`, \`created_at_ms\`, \`id\`);
create index \`wallet_automation_executions_by_wallet\` on \`wallet_automation_executions\` (\`wallet_id\`, \`created_at_ms\`, \`id\`);
create index \`wallet_automation_executions_due\` on \`wallet_automation_executions\` (\`next_run_at_ms\`, \`id\`) where next_run_at_ms is not null;
create index \`wallet_automation_executions_by_action\` on \`wallet_automation_executions\` (\`action_id\`) where action_id is not null;
create index \`wallet_automation_executions_open\` on \`wallet_automation_executions\` (\`wallet_id\`, \`caip2\`, \`asset_address\`, \`created_at_ms\`, \`id\`) where status in ('pending', 'submitted');
create unique index \`wallet_automation_executions_of_deposit\` on \`wallet_automation_executions\` (\`wallet_id\`, \`caip2\`, \`transfer_key\`);
`,
};
