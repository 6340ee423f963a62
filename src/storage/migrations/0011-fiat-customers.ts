import type { SchemaMigration } from './schema-migration.ts';

export const fiatCustomers: SchemaMigration = {
  name: '0011-fiat-customers',
  postgres: `
create table "fiat_customers" ("id" text not null, "app_id" text not null, "entity_type" text not null, "entity_id" text not null, "provider" text not null, "environment" text not null, "customer_id" text not null, "snapshot" text not null, "version" int not null, "submitted_at_ms" bigint null, "checked_at_ms" bigint not null, "next_check_at_ms" bigint not null, "created_at_ms" bigint not null, "updated_at_ms" bigint not null, primary key ("id"));
create index "fiat_customers_due" on "fiat_customers" ("next_check_at_ms");
create index "fiat_customers_by_provider" on "fiat_customers" ("provider", "environment", "customer_id");
alter table "fiat_customers" add constraint "fiat_customers_by_entity" unique ("app_id", "entity_type", "entity_id", "provider", "environment");
`,
  sqlite: `
create table \`fiat_customers\` (\`id\` text not null primary key, \`app_id\` text not null, \`entity_type\` text not null, \`entity_id\` text not null, \`provider\` text not null, \`environment\` text not null, \`customer_id\` text not null, \`snapshot\` text not null, \`version\` integer not null, \`submitted_at_ms\` bigint null, \`checked_at_ms\` bigint not null, \`next_check_at_ms\` bigint not null, \`created_at_ms\` bigint not null, \`updated_at_ms\` bigint not null);
create index \`fiat_customers_due\` on \`fiat_customers\` (\`next_check_at_ms\`);
create index \`fiat_customers_by_provider\` on \`fiat_customers\` (\`provider\`, \`environment\`, \`customer_id\`);
create unique index \`fiat_customers_by_entity\` on \`fiat_customers\` (\`app_id\`, \`entity_type\`, \`entity_id\`, \`provider\`, \`environment\`);
`,
};
