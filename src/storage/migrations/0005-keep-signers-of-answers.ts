import type { SchemaMigration } from './schema-migration.ts';

/**
 * Adds a nullable column without a default, which rewrites no row on either database. Responses stored before are
 * repeated without signatures until they expire, 24 hours later.
 */
export const keepSignersOfAnswers: SchemaMigration = {
  name: '0005-keep-signers-of-answers',
  postgres: `
alter table "idempotency_records" add "signers" text null;
`,
  sqlite: `
alter table \`idempotency_records\` add column \`signers\` text null;
`,
};
