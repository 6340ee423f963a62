import type { SchemaMigration } from './schema-migration.ts';

export const takeOverWork: SchemaMigration = {
  name: '0019-take-over-work',
  postgres: `
create table "server_processes" ("id" text not null, "beats" bigint not null, "started_at_ms" bigint not null, primary key ("id"));

alter table "wallet_automation_executions" add "claimed_by" text null;

alter table "chain_positions" add "claimed_by" text null;

alter table "fiat_customers" add "claimed_by" text null;

alter table "intents" add "claimed_by" text null;

alter table "transactions" add "claimed_by" text null;

alter table "wallet_action_steps" add "claimed_by" text null;
`,
  sqlite: `
create table \`server_processes\` (\`id\` text not null primary key, \`beats\` bigint not null, \`started_at_ms\` bigint not null);

alter table \`wallet_automation_executions\` add column \`claimed_by\` text null;

alter table \`chain_positions\` add column \`claimed_by\` text null;

alter table \`fiat_customers\` add column \`claimed_by\` text null;

alter table \`intents\` add column \`claimed_by\` text null;

alter table \`transactions\` add column \`claimed_by\` text null;

alter table \`wallet_action_steps\` add column \`claimed_by\` text null;
`,
};
