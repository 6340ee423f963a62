import type { SchemaMigration } from './schema-migration.ts';

/**
 * Renames the columns of exchanges, which payouts use too, and adds nullable columns without defaults, which rewrites
 * no row on either database. The updates concern only the steps that an exchange performs.
 */
export const stepsOfActions: SchemaMigration = {
  name: '0006-steps-of-actions',
  postgres: `
alter table "transactions" add "after_transaction_id" text null;

alter table "wallet_actions" add "terms" text null;

alter table "wallet_action_steps" rename column "quote_id" to "external_id";
alter table "wallet_action_steps" rename column "exchange_status" to "external_status";
alter table "wallet_action_steps" add "effects" text null, add "effects_block_number" bigint null, add "external_kind" text null;
update "wallet_action_steps" set "external_kind" = 'exchange' where "external_id" is not null;
update "wallet_action_steps" set "external_status" = 'done' where "external_status" = 'paid';
update "wallet_action_steps" set "external_status" = 'given_back' where "external_status" = 'refunded';
`,
  sqlite: `
alter table \`transactions\` add column \`after_transaction_id\` text null;

alter table \`wallet_actions\` add column \`terms\` text null;

alter table \`wallet_action_steps\` rename column \`quote_id\` to \`external_id\`;
alter table \`wallet_action_steps\` rename column \`exchange_status\` to \`external_status\`;
alter table \`wallet_action_steps\` add column \`effects\` text null;
alter table \`wallet_action_steps\` add column \`effects_block_number\` bigint null;
alter table \`wallet_action_steps\` add column \`external_kind\` text null;
update \`wallet_action_steps\` set \`external_kind\` = 'exchange' where \`external_id\` is not null;
update \`wallet_action_steps\` set \`external_status\` = 'done' where \`external_status\` = 'paid';
update \`wallet_action_steps\` set \`external_status\` = 'given_back' where \`external_status\` = 'refunded';
`,
};
