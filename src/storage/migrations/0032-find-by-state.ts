import type { SchemaMigration } from './schema-migration.ts';

// Building indexes on existing tables blocks writes to those tables: deliveries, and requests that add to aggregations.
export const findByState: SchemaMigration = {
  name: '0032-find-by-state',
  postgres: `
create index "aggregation_records_by_age" on "aggregation_records" ("aggregation_id", "recorded_at_ms");
create index "webhook_deliveries_failed" on "webhook_deliveries" ("endpoint_id", "event_sequence") where status = 'failed';
create index "webhook_deliveries_pending" on "webhook_deliveries" ("endpoint_id", "event_sequence") where status = 'pending';
`,
  sqlite: `
create index \`aggregation_records_by_age\` on \`aggregation_records\` (\`aggregation_id\`, \`recorded_at_ms\`);
create index \`webhook_deliveries_failed\` on \`webhook_deliveries\` (\`endpoint_id\`, \`event_sequence\`) where status = 'failed';
create index \`webhook_deliveries_pending\` on \`webhook_deliveries\` (\`endpoint_id\`, \`event_sequence\`) where status = 'pending';
`,
};
