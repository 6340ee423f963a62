import type { SchemaMigration } from './schema-migration.ts';

export const readTransfersOfNodes: SchemaMigration = {
  name: '0008-read-transfers-of-nodes',
  postgres: `
alter table "chain_positions" add "leased_until_ms" bigint not null default '0';

create index "wallets_on_solana" on "wallets" ("address") where chain_type = 'solana' and archived_at_ms is null;
`,
  sqlite: `
alter table \`chain_positions\` add column \`leased_until_ms\` bigint not null default '0';

create index \`wallets_on_solana\` on \`wallets\` (\`address\`) where chain_type = 'solana' and archived_at_ms is null;
`,
};
