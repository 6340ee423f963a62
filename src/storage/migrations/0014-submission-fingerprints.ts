import type { SchemaMigration } from './schema-migration.ts';

export const submissionFingerprints: SchemaMigration = {
  name: '0014-submission-fingerprints',
  postgres: `
alter table "fiat_customers" add "submission_fingerprint" text null;
`,
  sqlite: `
alter table \`fiat_customers\` add column \`submission_fingerprint\` text null;
`,
};
