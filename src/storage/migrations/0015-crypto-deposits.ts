import type { SchemaMigration } from './schema-migration.ts';

export const cryptoDeposits: SchemaMigration = {
  name: '0015-crypto-deposits',
  postgres: `
alter table "wallet_automations" add "is_managed" int not null default 0;

alter table "wallet_automation_attachments" add "destination_wallet_id" text null, add "route_key" text null, add "route" text null;
create unique index "wallet_automation_attachments_of_route" on "wallet_automation_attachments" ("destination_wallet_id", "route_key") where destination_wallet_id is not null;

alter table "wallet_automation_executions" add "destination_wallet_id" text null, add "swept_by_id" text null;
create index "wallet_automation_executions_by_destination" on "wallet_automation_executions" ("destination_wallet_id", "created_at_ms", "id") where destination_wallet_id is not null;
`,
  sqlite: `
alter table \`wallet_automations\` add column \`is_managed\` integer not null default 0;

alter table \`wallet_automation_attachments\` add column \`destination_wallet_id\` text null;
alter table \`wallet_automation_attachments\` add column \`route_key\` text null;
alter table \`wallet_automation_attachments\` add column \`route\` text null;
create unique index \`wallet_automation_attachments_of_route\` on \`wallet_automation_attachments\` (\`destination_wallet_id\`, \`route_key\`) where destination_wallet_id is not null;

alter table \`wallet_automation_executions\` add column \`destination_wallet_id\` text null;
alter table \`wallet_automation_executions\` add column \`swept_by_id\` text null;
create index \`wallet_automation_executions_by_destination\` on \`wallet_automation_executions\` (\`destination_wallet_id\`, \`created_at_ms\`, \`id\`) where destination_wallet_id is not null;
`,
};
