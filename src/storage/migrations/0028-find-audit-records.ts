import type { SchemaMigration } from './schema-migration.ts';

// Lets a server find the records of the changes that it has acknowledged, however many records were added since. While
// the index of an old table is built, new records wait in `audit_pending` for their place in the log. Changes are not
// blocked.
export const findAuditRecords: SchemaMigration = {
  name: '0028-find-audit-records',
  postgres: `
create index "audit_records_by_pending_id" on "audit_records" ("pending_id");
`,
  sqlite: `
create index \`audit_records_by_pending_id\` on \`audit_records\` (\`pending_id\`);
`,
};
