import type { SchemaMigration } from './schema-migration.ts';

export const cards: SchemaMigration = {
  name: '0017-cards',
  postgres: `
create table "cards" ("id" text not null, "app_id" text not null, "user_id" text not null, "environment" text not null, "wallet_id" text not null, "caip2" text not null, "asset" text not null, "issuer_card_id" text not null, "status" text not null, "revision" int not null, "brand" text not null, "last4" text not null, "exp_month" int not null, "exp_year" int not null, "cancellation_reason" text null, "replaced_by_id" text null, "created_at_ms" bigint not null, "next_check_at_ms" bigint null, primary key ("id"));
create index "cards_by_age" on "cards" ("app_id", "user_id", "environment", "created_at_ms", "id");
create index "cards_by_user" on "cards" ("user_id");
create index "cards_by_wallet" on "cards" ("wallet_id");
create index "cards_due" on "cards" ("next_check_at_ms") where next_check_at_ms is not null;
alter table "cards" add constraint "cards_by_issuer" unique ("environment", "issuer_card_id");

create table "card_customers" ("id" text not null, "app_id" text not null, "user_id" text not null, "environment" text not null, "disclosure_accepted_at_ms" bigint null, "accepted_agreements" text not null, "agreements_accepted_at_ms" bigint null, "created_at_ms" bigint not null, primary key ("id"));
alter table "card_customers" add constraint "card_customers_by_user" unique ("app_id", "user_id", "environment");
`,
  sqlite: `
create table \`cards\` (\`id\` text not null primary key, \`app_id\` text not null, \`user_id\` text not null, \`environment\` text not null, \`wallet_id\` text not null, \`caip2\` text not null, \`asset\` text not null, \`issuer_card_id\` text not null, \`status\` text not null, \`revision\` integer not null, \`brand\` text not null, \`last4\` text not null, \`exp_month\` integer not null, \`exp_year\` integer not null, \`cancellation_reason\` text null, \`replaced_by_id\` text null, \`created_at_ms\` bigint not null, \`next_check_at_ms\` bigint null);
create index \`cards_by_age\` on \`cards\` (\`app_id\`, \`user_id\`, \`environment\`, \`created_at_ms\`, \`id\`);
create index \`cards_by_user\` on \`cards\` (\`user_id\`);
create index \`cards_by_wallet\` on \`cards\` (\`wallet_id\`);
create index \`cards_due\` on \`cards\` (\`next_check_at_ms\`) where next_check_at_ms is not null;
create unique index \`cards_by_issuer\` on \`cards\` (\`environment\`, \`issuer_card_id\`);

create table \`card_customers\` (\`id\` text not null primary key, \`app_id\` text not null, \`user_id\` text not null, \`environment\` text not null, \`disclosure_accepted_at_ms\` bigint null, \`accepted_agreements\` text not null, \`agreements_accepted_at_ms\` bigint null, \`created_at_ms\` bigint not null);
create unique index \`card_customers_by_user\` on \`card_customers\` (\`app_id\`, \`user_id\`, \`environment\`);
`,
};
