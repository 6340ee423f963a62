import type { SchemaMigration } from './schema-migration.ts';

export const developerFees: SchemaMigration = {
  name: '0034-developer-fees',
  postgres: `
alter table "fiat_deposit_accounts" add "developer_fee_percent" text not null default '0';
`,
  sqlite: `
alter table \`fiat_deposit_accounts\` add column \`developer_fee_percent\` text not null default '0';
`,
};
