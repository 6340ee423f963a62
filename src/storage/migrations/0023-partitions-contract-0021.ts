import type { SchemaMigration } from './schema-migration.ts';

// Tables that only grow are partitioned by ranges of their key (src/storage/schema/partitions.ts). The existing rows
// become the first partition. The database checks its bound once, which takes a few seconds per ten million rows and
// blocks writers.
//
// A unique index of a partitioned table contains the key of the partitions. Ids of events are drawn at random, and
// those of deliveries are derived from event and endpoint, so nothing depends on a unique index without this key.
// Servers of the previous version keep working, because none of their statements names such an index.
export const partitions: SchemaMigration = {
  name: '0023-partitions-contract-0021',
  postgres: `
alter table "audit_records" rename to "audit_records_p0";
alter table "audit_records_p0" rename constraint "audit_records_pkey" to "audit_records_p0_pkey";
alter index "audit_records_of_operators" rename to "audit_records_p0_of_operators";
create table "audit_records" (like "audit_records_p0" including defaults) partition by range ("leaf_index");
alter table "audit_records" add primary key ("leaf_index");
create index "audit_records_of_operators" on "audit_records" ("app_id", "leaf_index") where origin is not null;

alter table "wallet_uses" rename to "wallet_uses_p0";
alter table "wallet_uses_p0" rename constraint "wallet_uses_pkey" to "wallet_uses_p0_pkey";
alter index "wallet_uses_by_wallet" rename to "wallet_uses_p0_by_wallet";
alter index "wallet_uses_by_trace" rename to "wallet_uses_p0_by_trace";
alter index "wallet_uses_denied_request" rename to "wallet_uses_p0_denied_request";
create table "wallet_uses" (like "wallet_uses_p0" including defaults) partition by range ("sequence");
alter table "wallet_uses" add primary key ("sequence");
create index "wallet_uses_by_wallet" on "wallet_uses" ("wallet_id", "sequence");
create index "wallet_uses_by_trace" on "wallet_uses" ("trace_id") where trace_id is not null;
create index "wallet_uses_denied_request" on "wallet_uses" ("request_id") where trace_id is not null;
alter sequence "wallet_uses_sequence_seq" owned by "wallet_uses"."sequence";

alter table "outbox_events" rename to "outbox_events_p0";
alter table "outbox_events_p0" rename constraint "outbox_events_pkey" to "outbox_events_p0_pkey";
alter table "outbox_events_p0" drop constraint "outbox_events_id";
alter index "outbox_events_by_app" rename to "outbox_events_p0_by_app";
alter index "outbox_events_by_age" rename to "outbox_events_p0_by_age";
alter index "outbox_events_to_fan_out" rename to "outbox_events_p0_to_fan_out";
create table "outbox_events" (like "outbox_events_p0" including defaults) partition by range ("sequence");
alter table "outbox_events" add primary key ("sequence");
create index "outbox_events_id" on "outbox_events" ("id");
create index "outbox_events_by_app" on "outbox_events" ("app_id", "sequence");
create index "outbox_events_by_age" on "outbox_events" ("created_at_ms");
create index "outbox_events_to_fan_out" on "outbox_events" ("sequence") where fanned_out_at_ms is null;
alter sequence "outbox_events_sequence_seq" owned by "outbox_events"."sequence";

alter table "webhook_deliveries" rename to "webhook_deliveries_p0";
alter table "webhook_deliveries_p0" drop constraint "webhook_deliveries_pkey";
alter index "webhook_deliveries_by_endpoint" rename to "webhook_deliveries_p0_by_endpoint";
alter index "webhook_deliveries_due" rename to "webhook_deliveries_p0_due";
alter index "webhook_deliveries_in_order" rename to "webhook_deliveries_p0_in_order";
alter index "webhook_deliveries_by_event" rename to "webhook_deliveries_p0_by_event";
alter index "webhook_deliveries_finished" rename to "webhook_deliveries_p0_finished";
create table "webhook_deliveries" (like "webhook_deliveries_p0" including defaults) partition by range ("event_sequence");
alter table "webhook_deliveries" add primary key ("id", "event_sequence");
create index "webhook_deliveries_by_endpoint" on "webhook_deliveries" ("endpoint_id", "event_sequence");
create index "webhook_deliveries_due" on "webhook_deliveries" ("endpoint_id", "next_attempt_at_ms", "event_sequence") where next_attempt_at_ms is not null;
create index "webhook_deliveries_in_order" on "webhook_deliveries" ("endpoint_id", "order_key", "event_sequence") where order_key is not null;
create index "webhook_deliveries_by_event" on "webhook_deliveries" ("event_sequence");
create index "webhook_deliveries_finished" on "webhook_deliveries" ("finished_at_ms") where finished_at_ms is not null;

create table "audit_records_default" partition of "audit_records" default;
do $$
declare
  -- Whole bundles of the audit log, and room until the next partition is added.
  bound bigint := (select (coalesce(max("leaf_index"), 0) / 256 + 1) * 256 + 102400 from "audit_records_p0");
begin
  execute format('alter table "audit_records" attach partition "audit_records_p0" for values from (minvalue) to (%L)', bound);
end
$$;

create table "wallet_uses_default" partition of "wallet_uses" default;
do $$
declare
  -- Whole bundles of the audit log, and room until the next partition is added.
  bound bigint := (select (coalesce(max("sequence"), 0) / 256 + 1) * 256 + 102400 from "wallet_uses_p0");
begin
  execute format('alter table "wallet_uses" attach partition "wallet_uses_p0" for values from (minvalue) to (%L)', bound);
end
$$;

create table "outbox_events_default" partition of "outbox_events" default;
do $$
declare
  -- Whole bundles of the audit log, and room until the next partition is added.
  bound bigint := (select (coalesce(max("sequence"), 0) / 256 + 1) * 256 + 102400 from "outbox_events_p0");
begin
  execute format('alter table "outbox_events" attach partition "outbox_events_p0" for values from (minvalue) to (%L)', bound);
end
$$;

create table "webhook_deliveries_default" partition of "webhook_deliveries" default;
do $$
declare
  -- Whole bundles of the audit log, and room until the next partition is added.
  bound bigint := (select (coalesce(max("event_sequence"), 0) / 256 + 1) * 256 + 102400 from "webhook_deliveries_p0");
begin
  execute format('alter table "webhook_deliveries" attach partition "webhook_deliveries_p0" for values from (minvalue) to (%L)', bound);
end
$$;
`,
  sqlite: `
drop index \`outbox_events_id\`;
create index \`outbox_events_id\` on \`outbox_events\` (\`id\`);

create table \`webhook_deliveries_keyed\` (\`id\` text not null, \`endpoint_id\` text not null, \`event_sequence\` bigint not null, \`event_id\` text not null, \`event_type\` text not null, \`status\` text not null, \`order_key\` text null, \`failures\` integer not null, \`attempt_count\` integer not null, \`attempts\` text not null, \`next_attempt_at_ms\` bigint null, \`created_at_ms\` bigint not null, \`finished_at_ms\` bigint null, primary key (\`id\`, \`event_sequence\`));
insert into \`webhook_deliveries_keyed\` select \`id\`, \`endpoint_id\`, \`event_sequence\`, \`event_id\`, \`event_type\`, \`status\`, \`order_key\`, \`failures\`, \`attempt_count\`, \`attempts\`, \`next_attempt_at_ms\`, \`created_at_ms\`, \`finished_at_ms\` from \`webhook_deliveries\`;
drop table \`webhook_deliveries\`;
alter table \`webhook_deliveries_keyed\` rename to \`webhook_deliveries\`;
create index \`webhook_deliveries_by_endpoint\` on \`webhook_deliveries\` (\`endpoint_id\`, \`event_sequence\`);
create index \`webhook_deliveries_due\` on \`webhook_deliveries\` (\`endpoint_id\`, \`next_attempt_at_ms\`, \`event_sequence\`) where next_attempt_at_ms is not null;
create index \`webhook_deliveries_in_order\` on \`webhook_deliveries\` (\`endpoint_id\`, \`order_key\`, \`event_sequence\`) where order_key is not null;
create index \`webhook_deliveries_by_event\` on \`webhook_deliveries\` (\`event_sequence\`);
create index \`webhook_deliveries_finished\` on \`webhook_deliveries\` (\`finished_at_ms\`) where finished_at_ms is not null;
`,
};
