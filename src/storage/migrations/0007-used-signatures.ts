import type { SchemaMigration } from './schema-migration.ts';

/** Adds an empty table. */
export const usedSignatures: SchemaMigration = {
  name: '0007-used-signatures',
  postgres: `
create table "used_signatures" ("app_id" text not null, "digest" text not null, "intent_id" text null, "status" int null, "answer" text null, "signers" text null, "expires_at_ms" bigint null, primary key ("app_id", "digest"));
create index "used_signatures_by_expiry" on "used_signatures" ("expires_at_ms");
`,
  sqlite: `
create table \`used_signatures\` (\`app_id\` text not null, \`digest\` text not null, \`intent_id\` text null, \`status\` integer null, \`answer\` text null, \`signers\` text null, \`expires_at_ms\` bigint null, primary key (\`app_id\`, \`digest\`));
create index \`used_signatures_by_expiry\` on \`used_signatures\` (\`expires_at_ms\`);
`,
};
