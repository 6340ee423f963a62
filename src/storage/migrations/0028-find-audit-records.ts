import type { SchemaMigration } from './schema-migration.ts';

// A server finds the records of the changes that it has acknowledged, however many others were placed since. While the
// index of an old table is built, records wait in `audit_pending` for their place; changes go on.
export const findAuditRecords: SchemaMigration = {
  name: '0028-find-audit-records',
  postgres: `
create index "audit_records_by_pending_id" on "audit_records" ("pending_id");
`,
  sqlite: `
create index \`audit_records_by_pending_id\` on \`audit_records\` (\`pending_id\`);
`,
};
