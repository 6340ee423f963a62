import type { SchemaMigration } from './schema-migration.ts';

export const boundUseRecords: SchemaMigration = {
  name: '0003-bound-use-records',
  postgres: `
create table "use_volumes" ("app_id" text not null, "day" int not null, "bytes" bigint not null, primary key ("app_id", "day"));

alter table "wallet_uses" add "request_digest" text null;
`,
  sqlite: `
create table \`use_volumes\` (\`app_id\` text not null, \`day\` integer not null, \`bytes\` bigint not null, primary key (\`app_id\`, \`day\`));

alter table \`wallet_uses\` add column \`request_digest\` text null;
`,
};
