import type { SchemaMigration } from './schema-migration.ts';

export const holdAuthorizationNonces: SchemaMigration = {
  name: '0002-hold-authorization-nonces',
  postgres: `
create table "transaction_authorizations" ("transaction_id" text not null, "position" int not null, "caip2" text not null, "authority" text not null, "nonce" bigint not null, "contract" text not null, primary key ("transaction_id", "position"));
create index "transaction_authorizations_by_nonce" on "transaction_authorizations" ("caip2", "authority", "nonce");
`,
  sqlite: `
create table \`transaction_authorizations\` (\`transaction_id\` text not null, \`position\` integer not null, \`caip2\` text not null, \`authority\` text not null, \`nonce\` bigint not null, \`contract\` text not null, primary key (\`transaction_id\`, \`position\`));
create index \`transaction_authorizations_by_nonce\` on \`transaction_authorizations\` (\`caip2\`, \`authority\`, \`nonce\`);
`,
};
