import type { SchemaMigration } from './schema-migration.ts';

/** Adds a nullable column without a default, which rewrites no row on either database. */
export const waitingAccounts: SchemaMigration = {
  name: '0004-waiting-accounts',
  postgres: `
alter table "linked_accounts" add "usable_at_ms" bigint null;
`,
  sqlite: `
alter table \`linked_accounts\` add column \`usable_at_ms\` bigint null;
`,
};
