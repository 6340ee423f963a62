import type { SchemaMigration } from './schema-migration.ts';

/** Adds an empty table. */
export const earnVaults: SchemaMigration = {
  name: '0012-earn-vaults',
  postgres: `
create table "earn_vaults" ("id" text not null, "app_id" text not null, "provider" text not null, "name" text not null, "caip2" text not null, "address" text not null, "asset_address" text not null, "asset_symbol" text not null, "asset_decimals" int not null, "admin_wallet_id" text null, "admin_address" text not null, "fee_bps" int not null, "created_at_ms" bigint not null, primary key ("id"));
alter table "earn_vaults" add constraint "earn_vaults_by_address" unique ("app_id", "caip2", "address");
`,
  sqlite: `
create table \`earn_vaults\` (\`id\` text not null, \`app_id\` text not null, \`provider\` text not null, \`name\` text not null, \`caip2\` text not null, \`address\` text not null, \`asset_address\` text not null, \`asset_symbol\` text not null, \`asset_decimals\` integer not null, \`admin_wallet_id\` text null, \`admin_address\` text not null, \`fee_bps\` integer not null, \`created_at_ms\` bigint not null, primary key (\`id\`));
create unique index \`earn_vaults_by_address\` on \`earn_vaults\` (\`app_id\`, \`caip2\`, \`address\`);
`,
};
