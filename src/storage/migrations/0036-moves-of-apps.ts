import type { SchemaMigration } from './schema-migration.ts';

export const movesOfApps: SchemaMigration = {
  name: '0036-moves-of-apps',
  postgres: `
create table "app_moves" ("app_id" text not null, "number" bigint not null, "state" text not null, "move_id" text not null, "other_cell" text not null, "changed_at_ms" bigint not null, primary key ("app_id"));

create table "moved_rows" ("app_id" text not null, "place" text not null, "position" bigint not null, "content" text not null, primary key ("app_id", "place", "position"));

alter table "server_processes" add "drained_move" bigint not null default 0;
`,
  sqlite: `
create table \`app_moves\` (\`app_id\` text not null primary key, \`number\` bigint not null, \`state\` text not null, \`move_id\` text not null, \`other_cell\` text not null, \`changed_at_ms\` bigint not null);

create table \`moved_rows\` (\`app_id\` text not null, \`place\` text not null, \`position\` bigint not null, \`content\` text not null, primary key (\`app_id\`, \`place\`, \`position\`));

alter table \`server_processes\` add column \`drained_move\` bigint not null default 0;
`,
};
