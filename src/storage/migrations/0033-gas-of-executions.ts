import type { SchemaMigration } from './schema-migration.ts';

export const gasOfExecutions: SchemaMigration = {
  name: '0033-gas-of-executions',
  postgres: `
alter table "wallet_automation_executions" add column "gas_cost" text null;
`,
  sqlite: `
alter table \`wallet_automation_executions\` add column \`gas_cost\` text null;
`,
};
