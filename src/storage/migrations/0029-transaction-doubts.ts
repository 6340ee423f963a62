import type { SchemaMigration } from './schema-migration.ts';

export const transactionDoubts: SchemaMigration = {
  name: '0029-transaction-doubts',
  postgres: `
alter table "transactions" add "doubt" text null;
`,
  sqlite: `
alter table \`transactions\` add column \`doubt\` text null;
`,
};
