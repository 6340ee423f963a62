import type { SchemaMigration } from './schema-migration.ts';

export const authoritiesOfWallets: SchemaMigration = {
  name: '0022-authorities-of-wallets',
  postgres: `
create table "key_quorum_changes" ("key_quorum_id" text not null, "position" int not null, "base" text null, "change" text not null, primary key ("key_quorum_id", "position"));

alter table "intent_signatures" add "signature" text null, add "payload" text null;

alter table "wallet_keys" add "authority" text null;
`,
  sqlite: `
create table \`key_quorum_changes\` (\`key_quorum_id\` text not null, \`position\` integer not null, \`base\` text null, \`change\` text not null, primary key (\`key_quorum_id\`, \`position\`));

alter table \`intent_signatures\` add column \`signature\` text null;
alter table \`intent_signatures\` add column \`payload\` text null;

alter table \`wallet_keys\` add column \`authority\` text null;
`,
};
