import type { SchemaMigration } from './schema-migration.ts';

export const listsAndRevokedSessions: SchemaMigration = {
  name: '0031-lists-and-revoked-sessions',
  postgres: `
create index "condition_sets_by_age" on "condition_sets" ("app_id", "created_at_ms", "id");

create index "key_quorums_by_age" on "key_quorums" ("app_id", "created_at_ms", "id");

create index "policies_by_age" on "policies" ("app_id", "created_at_ms", "id");

alter table "user_sessions" add "revoked_at_ms" bigint null;
`,
  sqlite: `
create index \`condition_sets_by_age\` on \`condition_sets\` (\`app_id\`, \`created_at_ms\`, \`id\`);

create index \`key_quorums_by_age\` on \`key_quorums\` (\`app_id\`, \`created_at_ms\`, \`id\`);

create index \`policies_by_age\` on \`policies\` (\`app_id\`, \`created_at_ms\`, \`id\`);

alter table \`user_sessions\` add column \`revoked_at_ms\` bigint null;
`,
};
