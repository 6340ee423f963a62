import type { SchemaMigration } from './schema-migration.ts';

export const publicDeviceClients: SchemaMigration = {
  name: '0016-public-device-clients',
  postgres: `
alter table "oauth_device_codes" add "public_network" text null;
`,
  sqlite: `
alter table \`oauth_device_codes\` add column \`public_network\` text null;
`,
};
