import type { SchemaMigration } from './schema-migration.ts';

/** Creates the tables of the first release. */
export const initial: SchemaMigration = {
  name: '0001-initial',
  postgres: `
create table "accounts" ("id" text not null, "app_id" text not null, "display_name" text null, "search_name" text null, "created_at_ms" bigint not null, primary key ("id"));
create index "accounts_by_age" on "accounts" ("app_id", "created_at_ms", "id");

create table "account_wallets" ("account_id" text not null, "wallet_id" text not null, "position" int not null, primary key ("account_id", "wallet_id"));

create table "aggregations" ("id" text not null, "app_id" text not null, "name" text not null, "definition" text not null, "window_seconds" int not null, "owner_id" text null, "created_at_ms" bigint not null, primary key ("id"));
create index "aggregations_by_app" on "aggregations" ("app_id", "id");
create index "aggregations_by_owner" on "aggregations" ("owner_id") where owner_id is not null;

create table "aggregation_records" ("id" text not null, "aggregation_id" text not null, "group_key" text not null, "amount" text not null, "recorded_at_ms" bigint not null, primary key ("id"));
create index "aggregation_records_window" on "aggregation_records" ("aggregation_id", "group_key", "recorded_at_ms");

create table "allowlist_entries" ("id" text not null, "app_id" text not null, "type" text not null, "value" text not null, "accepted_at_ms" bigint null, "created_at_ms" bigint not null, primary key ("id"));
create index "allowlist_entries_by_age" on "allowlist_entries" ("app_id", "created_at_ms", "id");
alter table "allowlist_entries" add constraint "allowlist_entries_value" unique ("app_id", "type", "value");

create table "apps" ("id" text not null, "name" text not null, "secret_hashes" text not null, "settings" text not null default '{}', "created_at_ms" bigint not null, primary key ("id"));
create index "apps_by_age" on "apps" ("created_at_ms", "id");

create table "app_signing_keys" ("id" text not null, "app_id" text not null, "public_key" text not null, "sealed_secret" bytea not null, "wrapped_data_key" bytea not null, "master_key_id" text not null, "created_at_ms" bigint not null, "retired_at_ms" bigint null, primary key ("id"));
create index "app_signing_keys_by_app" on "app_signing_keys" ("app_id", "created_at_ms", "id");
create index "app_signing_keys_by_master_key" on "app_signing_keys" ("master_key_id");
create unique index "app_signing_keys_current" on "app_signing_keys" ("app_id") where retired_at_ms is null;

create table "chain_positions" ("caip2" text not null, "position" text not null, primary key ("caip2"));

create table "condition_sets" ("id" text not null, "app_id" text not null, "name" text not null, "owner_id" text null, "created_at_ms" bigint not null, primary key ("id"));
create index "condition_sets_by_owner" on "condition_sets" ("owner_id") where owner_id is not null;

create table "condition_set_items" ("id" text not null, "condition_set_id" text not null, "value" text not null, "value_lower" text not null, "created_at_ms" bigint not null, primary key ("id"));
create index "condition_set_items_by_age" on "condition_set_items" ("condition_set_id", "created_at_ms", "id");
create index "condition_set_items_by_value" on "condition_set_items" ("condition_set_id", "value_lower");
alter table "condition_set_items" add constraint "condition_set_items_value" unique ("condition_set_id", "value");

create table "deleted_users" ("id" text not null, "app_id" text not null, "created_at_ms" bigint not null, primary key ("id"));

create table "idempotency_records" ("app_id" text not null, "key" text not null, "fingerprint" text not null, "status" int not null, "answer" text null, "created_at_ms" bigint not null, primary key ("app_id", "key"));
create index "idempotency_records_by_age" on "idempotency_records" ("created_at_ms");

create table "intents" ("id" text not null, "app_id" text not null, "intent_type" text not null, "status" text not null, "operation_id" text not null, "path_parameters" text not null, "body" text null, "url" text not null, "subject_id" text not null, "resource_id" text not null, "created_by_id" text null, "created_at_ms" bigint not null, "updated_at_ms" bigint not null, "expires_at_ms" bigint not null, "request_expiry_ms" bigint null, "ended_at_ms" bigint null, "dismissal_reason" text null, "authorization_details" text not null, "action_result" text null, "awaited_action_id" text null, primary key ("id"));
create index "intents_by_age" on "intents" ("app_id", "created_at_ms", "id");
create index "intents_by_expiry" on "intents" ("app_id", "expires_at_ms", "id");
create index "intents_by_change" on "intents" ("app_id", "updated_at_ms", "id");
create index "intents_by_status" on "intents" ("app_id", "status", "created_at_ms", "id");
create index "intents_by_status_expiry" on "intents" ("app_id", "status", "expires_at_ms", "id");
create index "intents_by_status_change" on "intents" ("app_id", "status", "updated_at_ms", "id");
create index "intents_by_resource" on "intents" ("resource_id", "created_at_ms", "id");
create index "intents_by_creator" on "intents" ("created_by_id", "created_at_ms", "id") where created_by_id is not null;
create index "intents_pending_by_subject" on "intents" ("subject_id") where status = 'pending';
create index "intents_pending_by_expiry" on "intents" ("expires_at_ms", "id") where status = 'pending';
create index "intents_by_awaited_action" on "intents" ("awaited_action_id") where awaited_action_id is not null;
create index "intents_processing" on "intents" ("updated_at_ms", "id") where status = 'processing';

create table "intent_parties" ("intent_id" text not null, "key_quorum_id" text not null, "position" int not null, primary key ("intent_id", "key_quorum_id"));
create index "intent_parties_by_quorum" on "intent_parties" ("key_quorum_id", "intent_id");

create table "intent_signatures" ("intent_id" text not null, "kind" text not null, "member" text not null, "public_key" text not null, "signed_at_ms" bigint not null, "received_at_ms" bigint not null, primary key ("intent_id", "kind", "member"));
create index "intent_signatures_by_member" on "intent_signatures" ("member", "intent_id");

create table "key_quorums" ("id" text not null, "app_id" text not null, "display_name" text null, "authorization_threshold" int null, "implicit_for" text null, "created_at_ms" bigint not null, primary key ("id"));
create unique index "key_quorums_implicit_for" on "key_quorums" ("app_id", "implicit_for") where implicit_for is not null;

create table "key_quorum_members" ("key_quorum_id" text not null, "position" int not null, "kind" text not null, "member" text not null, primary key ("key_quorum_id", "position"));
create index "key_quorum_members_by_member" on "key_quorum_members" ("member", "kind");

create table "linked_accounts" ("id" text not null, "app_id" text not null, "user_id" text not null, "position" int not null, "type" text not null, "subject" text not null, "username" text null, "wallet_id" text null, "details" text not null default '{}', "verified_at_ms" bigint null, "first_verified_at_ms" bigint null, "latest_verified_at_ms" bigint null, primary key ("id"));
create index "linked_accounts_by_user" on "linked_accounts" ("user_id", "position");
create index "linked_accounts_by_username" on "linked_accounts" ("app_id", "type", "username", "latest_verified_at_ms", "id") where username is not null;
alter table "linked_accounts" add constraint "linked_accounts_subject" unique ("app_id", "type", "subject");

create table "master_key_checks" ("master_key_id" text not null, "sealed_secret" bytea not null, "wrapped_data_key" bytea not null, primary key ("master_key_id"));

create table "organizations" ("id" text not null, "app_id" text not null, "display_name" text not null, "default_key_quorum_id" text not null, "created_at_ms" bigint not null, "updated_at_ms" bigint not null, primary key ("id"));
create index "organizations_by_age" on "organizations" ("app_id", "created_at_ms", "id");
create index "organizations_by_key_quorum" on "organizations" ("default_key_quorum_id");

create table "organization_secrets" ("id" text not null, "organization_id" text not null, "secret_hash" text not null, "last_four" text not null, "signing_public_key" text null, "created_at_ms" bigint not null, "revoked_at_ms" bigint null, primary key ("id"));
create index "organization_secrets_by_age" on "organization_secrets" ("organization_id", "created_at_ms", "id");
alter table "organization_secrets" add constraint "organization_secrets_hash" unique ("secret_hash");

create table "outbox_events" ("sequence" bigserial primary key, "id" text not null, "app_id" text not null, "type" text not null, "payload" text not null, "resource_id" text null, "created_at_ms" bigint not null, "fanned_out_at_ms" bigint null);
create index "outbox_events_by_app" on "outbox_events" ("app_id", "sequence");
create index "outbox_events_by_age" on "outbox_events" ("created_at_ms");
create index "outbox_events_to_fan_out" on "outbox_events" ("sequence") where fanned_out_at_ms is null;
alter table "outbox_events" add constraint "outbox_events_id" unique ("id");

create table "policies" ("id" text not null, "app_id" text not null, "name" text not null, "chain_type" text not null, "rules" text not null default '[]', "rules_digest" text not null, "revision" int not null default 0, "owner_id" text null, "created_at_ms" bigint not null, primary key ("id"));
create index "policies_by_owner" on "policies" ("owner_id") where owner_id is not null;

create table "transactions" ("id" text not null, "app_id" text not null, "wallet_id" text not null, "caip2" text not null, "sender" text not null, "method" text not null, "status" text not null, "transaction_hash" text null, "user_operation_hash" text null, "is_sponsored" int not null default 0, "reference_id" text null, "nonce" bigint null, "signed_bytes" bytea not null, "transaction_request" text null, "moved_token" text null, "moved_to" text null, "moved_amount" text null, "block_number" bigint null, "block_timestamp_seconds" bigint null, "fee_paid" text null, "failure_reason" text null, "is_slow_told" int not null default 0, "are_funds_told" int not null default 0, "is_gas_told" int not null default 0, "created_at_ms" bigint not null, "updated_at_ms" bigint not null, "next_check_at_ms" bigint null, primary key ("id"));
create index "transactions_by_reference" on "transactions" ("app_id", "reference_id", "created_at_ms", "id") where reference_id is not null;
create index "transactions_by_wallet" on "transactions" ("wallet_id", "caip2", "created_at_ms", "id");
create index "transactions_by_nonce" on "transactions" ("caip2", "sender", "nonce") where nonce is not null;
create index "transactions_by_hash" on "transactions" ("caip2", "transaction_hash");
create index "transactions_due" on "transactions" ("next_check_at_ms", "id") where next_check_at_ms is not null;

create table "users" ("id" text not null, "app_id" text not null, "custom_metadata" text null, "has_accepted_terms" int not null default 0, "is_guest" int not null default 0, "mfa_methods" text not null default '[]', "frozen_at_ms" bigint null, "created_at_ms" bigint not null, primary key ("id"));
create index "users_by_age" on "users" ("app_id", "created_at_ms", "id");

create table "user_keys" ("id" text not null, "app_id" text not null, "user_id" text not null, "public_key" text not null, "intent_ids" text null, "created_at_ms" bigint not null, "expires_at_ms" bigint not null, primary key ("id"));
create index "user_keys_by_user" on "user_keys" ("user_id", "created_at_ms", "id");

create table "user_search_terms" ("app_id" text not null, "term" bytea not null, "user_created_at_ms" bigint not null, "user_id" text not null, "account_id" text not null, primary key ("app_id", "term", "user_created_at_ms", "user_id", "account_id"));
create index "user_search_terms_by_account" on "user_search_terms" ("account_id");

create table "user_sessions" ("id" text not null, "app_id" text not null, "user_id" text not null, "refresh_token_hash" text not null, "created_at_ms" bigint not null, primary key ("id"));
create index "user_sessions_by_user" on "user_sessions" ("user_id");

create table "wallets" ("id" text not null, "app_id" text not null, "chain_type" text not null, "address" text not null, "public_key" text null, "display_name" text null, "external_id" text null, "owner_id" text null, "policy_id" text null, "additional_signers" text not null default '[]', "entity_type" text null, "entity_id" text null, "entity_assignment_id" text null, "entity_assigned_at_ms" bigint null, "custody_provider" text null, "custody_provider_user_id" text null, "custody_chain" text null, "created_at_ms" bigint not null, "exported_at_ms" bigint null, "imported_at_ms" bigint null, "archived_at_ms" bigint null, primary key ("id"));
create index "wallets_by_age" on "wallets" ("app_id", "created_at_ms", "id");
create index "wallets_by_age_live" on "wallets" ("app_id", "created_at_ms", "id") where archived_at_ms is null;
create index "wallets_by_chain_type" on "wallets" ("app_id", "chain_type", "created_at_ms", "id");
create index "wallets_by_owner" on "wallets" ("owner_id", "created_at_ms", "id") where owner_id is not null;
create index "wallets_by_entity" on "wallets" ("entity_id", "created_at_ms", "id") where entity_id is not null;
create index "wallets_by_address" on "wallets" ("address", "app_id");
create index "wallets_by_policy" on "wallets" ("policy_id") where policy_id is not null;
create unique index "wallets_external_id" on "wallets" ("app_id", "external_id") where external_id is not null;

create table "wallet_actions" ("id" text not null, "app_id" text not null, "wallet_id" text not null, "type" text not null, "status" text not null, "nonce" text null, "reference_id" text null, "details" text not null, "outcome" text null, "created_at_ms" bigint not null, "ended_at_ms" bigint null, primary key ("id"));
create index "wallet_actions_by_age" on "wallet_actions" ("wallet_id", "created_at_ms", "id");
create index "wallet_actions_pending" on "wallet_actions" ("created_at_ms", "id") where status = 'pending';
create unique index "wallet_actions_nonce" on "wallet_actions" ("wallet_id", "nonce") where nonce is not null;

create table "wallet_action_steps" ("action_id" text not null, "position" int not null, "type" text not null, "transaction_id" text null, "caip2" text null, "quote_id" text null, "delivery" text null, "exchange_status" text null, "hash" text null, "failure_reason" text null, "next_check_at_ms" bigint null, primary key ("action_id", "position"));
create index "wallet_action_steps_by_transaction" on "wallet_action_steps" ("transaction_id") where transaction_id is not null;
create index "wallet_action_steps_due" on "wallet_action_steps" ("next_check_at_ms") where next_check_at_ms is not null;

create table "wallet_imports" ("id" text not null, "app_id" text not null, "chain_type" text not null, "address" text not null, "sealed_secret" bytea not null, "wrapped_data_key" bytea not null, "master_key_id" text not null, "expires_at_ms" bigint not null, primary key ("id"));
alter table "wallet_imports" add constraint "wallet_imports_address" unique ("app_id", "chain_type", "address");

create table "wallet_keys" ("wallet_id" text not null, "sealed_secret" bytea not null, "wrapped_data_key" bytea not null, "master_key_id" text not null, "entropy_type" text not null, "derivation_path" text null, "wallet_index" int null, primary key ("wallet_id"));
create index "wallet_keys_by_master_key" on "wallet_keys" ("master_key_id");

create table "wallet_signers" ("wallet_id" text not null, "position" int not null, "signer_id" text not null, "override_policy_id" text null, primary key ("wallet_id", "position"));
create index "wallet_signers_by_signer" on "wallet_signers" ("signer_id");
create index "wallet_signers_by_policy" on "wallet_signers" ("override_policy_id") where override_policy_id is not null;

create table "wallet_uses" ("sequence" bigserial primary key, "app_id" text not null, "wallet_id" text not null, "operation" text not null, "method" text not null, "request_id" text not null, "judged_at_ms" bigint not null, "decision" text not null, "policy_ids" text not null, "request" text null, "trace_id" text null, "trace" text null);
create index "wallet_uses_by_wallet" on "wallet_uses" ("wallet_id", "sequence");
create index "wallet_uses_by_trace" on "wallet_uses" ("trace_id") where trace_id is not null;
create index "wallet_uses_denied_request" on "wallet_uses" ("request_id") where trace_id is not null;

create table "webhook_deliveries" ("id" text not null, "endpoint_id" text not null, "event_sequence" bigint not null, "event_id" text not null, "event_type" text not null, "status" text not null, "order_key" text null, "failures" int not null, "attempt_count" int not null, "attempts" text not null, "next_attempt_at_ms" bigint null, "created_at_ms" bigint not null, "finished_at_ms" bigint null, primary key ("id"));
create index "webhook_deliveries_by_endpoint" on "webhook_deliveries" ("endpoint_id", "event_sequence");
create index "webhook_deliveries_due" on "webhook_deliveries" ("endpoint_id", "next_attempt_at_ms", "event_sequence") where next_attempt_at_ms is not null;
create index "webhook_deliveries_in_order" on "webhook_deliveries" ("endpoint_id", "order_key", "event_sequence") where order_key is not null;
create index "webhook_deliveries_by_event" on "webhook_deliveries" ("event_sequence");
create index "webhook_deliveries_finished" on "webhook_deliveries" ("finished_at_ms") where finished_at_ms is not null;

create table "webhook_endpoints" ("id" text not null, "app_id" text not null, "url" text not null, "description" text null, "event_types" text not null, "status" text not null, "disabled_reason" text null, "after_sequence" bigint not null, "failing_since_ms" bigint null, "failing_day_count" int not null, "last_failing_day" int not null, "next_due_at_ms" bigint null, "lease_owner" text null, "leased_until_ms" bigint null, "created_at_ms" bigint not null, "updated_at_ms" bigint not null, primary key ("id"));
create index "webhook_endpoints_by_app" on "webhook_endpoints" ("app_id", "created_at_ms", "id");
create index "webhook_endpoints_due" on "webhook_endpoints" ("next_due_at_ms") where next_due_at_ms is not null;

create table "webhook_secrets" ("id" text not null, "endpoint_id" text not null, "app_id" text not null, "sealed_secret" bytea not null, "wrapped_data_key" bytea not null, "master_key_id" text not null, "created_at_ms" bigint not null, "expires_at_ms" bigint null, primary key ("id"));
create index "webhook_secrets_by_endpoint" on "webhook_secrets" ("endpoint_id");
`,
  sqlite: `
create table \`accounts\` (\`id\` text not null primary key, \`app_id\` text not null, \`display_name\` text null, \`search_name\` text null, \`created_at_ms\` bigint not null);
create index \`accounts_by_age\` on \`accounts\` (\`app_id\`, \`created_at_ms\`, \`id\`);

create table \`account_wallets\` (\`account_id\` text not null, \`wallet_id\` text not null, \`position\` integer not null, primary key (\`account_id\`, \`wallet_id\`));

create table \`aggregations\` (\`id\` text not null primary key, \`app_id\` text not null, \`name\` text not null, \`definition\` text not null, \`window_seconds\` integer not null, \`owner_id\` text null, \`created_at_ms\` bigint not null);
create index \`aggregations_by_app\` on \`aggregations\` (\`app_id\`, \`id\`);
create index \`aggregations_by_owner\` on \`aggregations\` (\`owner_id\`) where owner_id is not null;

create table \`aggregation_records\` (\`id\` text not null primary key, \`aggregation_id\` text not null, \`group_key\` text not null, \`amount\` text not null, \`recorded_at_ms\` bigint not null);
create index \`aggregation_records_window\` on \`aggregation_records\` (\`aggregation_id\`, \`group_key\`, \`recorded_at_ms\`);

create table \`allowlist_entries\` (\`id\` text not null primary key, \`app_id\` text not null, \`type\` text not null, \`value\` text not null, \`accepted_at_ms\` bigint null, \`created_at_ms\` bigint not null);
create index \`allowlist_entries_by_age\` on \`allowlist_entries\` (\`app_id\`, \`created_at_ms\`, \`id\`);
create unique index \`allowlist_entries_value\` on \`allowlist_entries\` (\`app_id\`, \`type\`, \`value\`);

create table \`apps\` (\`id\` text not null primary key, \`name\` text not null, \`secret_hashes\` text not null, \`settings\` text not null default '{}', \`created_at_ms\` bigint not null);
create index \`apps_by_age\` on \`apps\` (\`created_at_ms\`, \`id\`);

create table \`app_signing_keys\` (\`id\` text not null primary key, \`app_id\` text not null, \`public_key\` text not null, \`sealed_secret\` blob not null, \`wrapped_data_key\` blob not null, \`master_key_id\` text not null, \`created_at_ms\` bigint not null, \`retired_at_ms\` bigint null);
create index \`app_signing_keys_by_app\` on \`app_signing_keys\` (\`app_id\`, \`created_at_ms\`, \`id\`);
create index \`app_signing_keys_by_master_key\` on \`app_signing_keys\` (\`master_key_id\`);
create unique index \`app_signing_keys_current\` on \`app_signing_keys\` (\`app_id\`) where retired_at_ms is null;

create table \`chain_positions\` (\`caip2\` text not null primary key, \`position\` text not null);

create table \`condition_sets\` (\`id\` text not null primary key, \`app_id\` text not null, \`name\` text not null, \`owner_id\` text null, \`created_at_ms\` bigint not null);
create index \`condition_sets_by_owner\` on \`condition_sets\` (\`owner_id\`) where owner_id is not null;

create table \`condition_set_items\` (\`id\` text not null primary key, \`condition_set_id\` text not null, \`value\` text not null, \`value_lower\` text not null, \`created_at_ms\` bigint not null);
create index \`condition_set_items_by_age\` on \`condition_set_items\` (\`condition_set_id\`, \`created_at_ms\`, \`id\`);
create index \`condition_set_items_by_value\` on \`condition_set_items\` (\`condition_set_id\`, \`value_lower\`);
create unique index \`condition_set_items_value\` on \`condition_set_items\` (\`condition_set_id\`, \`value\`);

create table \`deleted_users\` (\`id\` text not null primary key, \`app_id\` text not null, \`created_at_ms\` bigint not null);

create table \`idempotency_records\` (\`app_id\` text not null, \`key\` text not null, \`fingerprint\` text not null, \`status\` integer not null, \`answer\` text null, \`created_at_ms\` bigint not null, primary key (\`app_id\`, \`key\`));
create index \`idempotency_records_by_age\` on \`idempotency_records\` (\`created_at_ms\`);

create table \`intents\` (\`id\` text not null primary key, \`app_id\` text not null, \`intent_type\` text not null, \`status\` text not null, \`operation_id\` text not null, \`path_parameters\` text not null, \`body\` text null, \`url\` text not null, \`subject_id\` text not null, \`resource_id\` text not null, \`created_by_id\` text null, \`created_at_ms\` bigint not null, \`updated_at_ms\` bigint not null, \`expires_at_ms\` bigint not null, \`request_expiry_ms\` bigint null, \`ended_at_ms\` bigint null, \`dismissal_reason\` text null, \`authorization_details\` text not null, \`action_result\` text null, \`awaited_action_id\` text null);
create index \`intents_by_age\` on \`intents\` (\`app_id\`, \`created_at_ms\`, \`id\`);
create index \`intents_by_expiry\` on \`intents\` (\`app_id\`, \`expires_at_ms\`, \`id\`);
create index \`intents_by_change\` on \`intents\` (\`app_id\`, \`updated_at_ms\`, \`id\`);
create index \`intents_by_status\` on \`intents\` (\`app_id\`, \`status\`, \`created_at_ms\`, \`id\`);
create index \`intents_by_status_expiry\` on \`intents\` (\`app_id\`, \`status\`, \`expires_at_ms\`, \`id\`);
create index \`intents_by_status_change\` on \`intents\` (\`app_id\`, \`status\`, \`updated_at_ms\`, \`id\`);
create index \`intents_by_resource\` on \`intents\` (\`resource_id\`, \`created_at_ms\`, \`id\`);
create index \`intents_by_creator\` on \`intents\` (\`created_by_id\`, \`created_at_ms\`, \`id\`) where created_by_id is not null;
create index \`intents_pending_by_subject\` on \`intents\` (\`subject_id\`) where status = 'pending';
create index \`intents_pending_by_expiry\` on \`intents\` (\`expires_at_ms\`, \`id\`) where status = 'pending';
create index \`intents_by_awaited_action\` on \`intents\` (\`awaited_action_id\`) where awaited_action_id is not null;
create index \`intents_processing\` on \`intents\` (\`updated_at_ms\`, \`id\`) where status = 'processing';

create table \`intent_parties\` (\`intent_id\` text not null, \`key_quorum_id\` text not null, \`position\` integer not null, primary key (\`intent_id\`, \`key_quorum_id\`));
create index \`intent_parties_by_quorum\` on \`intent_parties\` (\`key_quorum_id\`, \`intent_id\`);

create table \`intent_signatures\` (\`intent_id\` text not null, \`kind\` text not null, \`member\` text not null, \`public_key\` text not null, \`signed_at_ms\` bigint not null, \`received_at_ms\` bigint not null, primary key (\`intent_id\`, \`kind\`, \`member\`));
create index \`intent_signatures_by_member\` on \`intent_signatures\` (\`member\`, \`intent_id\`);

create table \`key_quorums\` (\`id\` text not null primary key, \`app_id\` text not null, \`display_name\` text null, \`authorization_threshold\` integer null, \`implicit_for\` text null, \`created_at_ms\` bigint not null);
create unique index \`key_quorums_implicit_for\` on \`key_quorums\` (\`app_id\`, \`implicit_for\`) where implicit_for is not null;

create table \`key_quorum_members\` (\`key_quorum_id\` text not null, \`position\` integer not null, \`kind\` text not null, \`member\` text not null, primary key (\`key_quorum_id\`, \`position\`));
create index \`key_quorum_members_by_member\` on \`key_quorum_members\` (\`member\`, \`kind\`);

create table \`linked_accounts\` (\`id\` text not null primary key, \`app_id\` text not null, \`user_id\` text not null, \`position\` integer not null, \`type\` text not null, \`subject\` text not null, \`username\` text null, \`wallet_id\` text null, \`details\` text not null default '{}', \`verified_at_ms\` bigint null, \`first_verified_at_ms\` bigint null, \`latest_verified_at_ms\` bigint null);
create index \`linked_accounts_by_user\` on \`linked_accounts\` (\`user_id\`, \`position\`);
create index \`linked_accounts_by_username\` on \`linked_accounts\` (\`app_id\`, \`type\`, \`username\`, \`latest_verified_at_ms\`, \`id\`) where username is not null;
create unique index \`linked_accounts_subject\` on \`linked_accounts\` (\`app_id\`, \`type\`, \`subject\`);

create table \`master_key_checks\` (\`master_key_id\` text not null primary key, \`sealed_secret\` blob not null, \`wrapped_data_key\` blob not null);

create table \`organizations\` (\`id\` text not null primary key, \`app_id\` text not null, \`display_name\` text not null, \`default_key_quorum_id\` text not null, \`created_at_ms\` bigint not null, \`updated_at_ms\` bigint not null);
create index \`organizations_by_age\` on \`organizations\` (\`app_id\`, \`created_at_ms\`, \`id\`);
create index \`organizations_by_key_quorum\` on \`organizations\` (\`default_key_quorum_id\`);

create table \`organization_secrets\` (\`id\` text not null primary key, \`organization_id\` text not null, \`secret_hash\` text not null, \`last_four\` text not null, \`signing_public_key\` text null, \`created_at_ms\` bigint not null, \`revoked_at_ms\` bigint null);
create index \`organization_secrets_by_age\` on \`organization_secrets\` (\`organization_id\`, \`created_at_ms\`, \`id\`);
create unique index \`organization_secrets_hash\` on \`organization_secrets\` (\`secret_hash\`);

create table \`outbox_events\` (\`sequence\` integer not null primary key autoincrement, \`id\` text not null, \`app_id\` text not null, \`type\` text not null, \`payload\` text not null, \`resource_id\` text null, \`created_at_ms\` bigint not null, \`fanned_out_at_ms\` bigint null);
create index \`outbox_events_by_app\` on \`outbox_events\` (\`app_id\`, \`sequence\`);
create index \`outbox_events_by_age\` on \`outbox_events\` (\`created_at_ms\`);
create index \`outbox_events_to_fan_out\` on \`outbox_events\` (\`sequence\`) where fanned_out_at_ms is null;
create unique index \`outbox_events_id\` on \`outbox_events\` (\`id\`);

create table \`policies\` (\`id\` text not null primary key, \`app_id\` text not null, \`name\` text not null, \`chain_type\` text not null, \`rules\` text not null default '[]', \`rules_digest\` text not null, \`revision\` integer not null default 0, \`owner_id\` text null, \`created_at_ms\` bigint not null);
create index \`policies_by_owner\` on \`policies\` (\`owner_id\`) where owner_id is not null;

create table \`transactions\` (\`id\` text not null primary key, \`app_id\` text not null, \`wallet_id\` text not null, \`caip2\` text not null, \`sender\` text not null, \`method\` text not null, \`status\` text not null, \`transaction_hash\` text null, \`user_operation_hash\` text null, \`is_sponsored\` integer not null default 0, \`reference_id\` text null, \`nonce\` bigint null, \`signed_bytes\` blob not null, \`transaction_request\` text null, \`moved_token\` text null, \`moved_to\` text null, \`moved_amount\` text null, \`block_number\` bigint null, \`block_timestamp_seconds\` bigint null, \`fee_paid\` text null, \`failure_reason\` text null, \`is_slow_told\` integer not null default 0, \`are_funds_told\` integer not null default 0, \`is_gas_told\` integer not null default 0, \`created_at_ms\` bigint not null, \`updated_at_ms\` bigint not null, \`next_check_at_ms\` bigint null);
create index \`transactions_by_reference\` on \`transactions\` (\`app_id\`, \`reference_id\`, \`created_at_ms\`, \`id\`) where reference_id is not null;
create index \`transactions_by_wallet\` on \`transactions\` (\`wallet_id\`, \`caip2\`, \`created_at_ms\`, \`id\`);
create index \`transactions_by_nonce\` on \`transactions\` (\`caip2\`, \`sender\`, \`nonce\`) where nonce is not null;
create index \`transactions_by_hash\` on \`transactions\` (\`caip2\`, \`transaction_hash\`);
create index \`transactions_due\` on \`transactions\` (\`next_check_at_ms\`, \`id\`) where next_check_at_ms is not null;

create table \`users\` (\`id\` text not null primary key, \`app_id\` text not null, \`custom_metadata\` text null, \`has_accepted_terms\` integer not null default 0, \`is_guest\` integer not null default 0, \`mfa_methods\` text not null default '[]', \`frozen_at_ms\` bigint null, \`created_at_ms\` bigint not null);
create index \`users_by_age\` on \`users\` (\`app_id\`, \`created_at_ms\`, \`id\`);

create table \`user_keys\` (\`id\` text not null primary key, \`app_id\` text not null, \`user_id\` text not null, \`public_key\` text not null, \`intent_ids\` text null, \`created_at_ms\` bigint not null, \`expires_at_ms\` bigint not null);
create index \`user_keys_by_user\` on \`user_keys\` (\`user_id\`, \`created_at_ms\`, \`id\`);

create table \`user_search_terms\` (\`app_id\` text not null, \`term\` blob not null, \`user_created_at_ms\` bigint not null, \`user_id\` text not null, \`account_id\` text not null, primary key (\`app_id\`, \`term\`, \`user_created_at_ms\`, \`user_id\`, \`account_id\`));
create index \`user_search_terms_by_account\` on \`user_search_terms\` (\`account_id\`);

create table \`user_sessions\` (\`id\` text not null primary key, \`app_id\` text not null, \`user_id\` text not null, \`refresh_token_hash\` text not null, \`created_at_ms\` bigint not null);
create index \`user_sessions_by_user\` on \`user_sessions\` (\`user_id\`);

create table \`wallets\` (\`id\` text not null primary key, \`app_id\` text not null, \`chain_type\` text not null, \`address\` text not null, \`public_key\` text null, \`display_name\` text null, \`external_id\` text null, \`owner_id\` text null, \`policy_id\` text null, \`additional_signers\` text not null default '[]', \`entity_type\` text null, \`entity_id\` text null, \`entity_assignment_id\` text null, \`entity_assigned_at_ms\` bigint null, \`custody_provider\` text null, \`custody_provider_user_id\` text null, \`custody_chain\` text null, \`created_at_ms\` bigint not null, \`exported_at_ms\` bigint null, \`imported_at_ms\` bigint null, \`archived_at_ms\` bigint null);
create index \`wallets_by_age\` on \`wallets\` (\`app_id\`, \`created_at_ms\`, \`id\`);
create index \`wallets_by_age_live\` on \`wallets\` (\`app_id\`, \`created_at_ms\`, \`id\`) where archived_at_ms is null;
create index \`wallets_by_chain_type\` on \`wallets\` (\`app_id\`, \`chain_type\`, \`created_at_ms\`, \`id\`);
create index \`wallets_by_owner\` on \`wallets\` (\`owner_id\`, \`created_at_ms\`, \`id\`) where owner_id is not null;
create index \`wallets_by_entity\` on \`wallets\` (\`entity_id\`, \`created_at_ms\`, \`id\`) where entity_id is not null;
create index \`wallets_by_address\` on \`wallets\` (\`address\`, \`app_id\`);
create index \`wallets_by_policy\` on \`wallets\` (\`policy_id\`) where policy_id is not null;
create unique index \`wallets_external_id\` on \`wallets\` (\`app_id\`, \`external_id\`) where external_id is not null;

create table \`wallet_actions\` (\`id\` text not null primary key, \`app_id\` text not null, \`wallet_id\` text not null, \`type\` text not null, \`status\` text not null, \`nonce\` text null, \`reference_id\` text null, \`details\` text not null, \`outcome\` text null, \`created_at_ms\` bigint not null, \`ended_at_ms\` bigint null);
create index \`wallet_actions_by_age\` on \`wallet_actions\` (\`wallet_id\`, \`created_at_ms\`, \`id\`);
create index \`wallet_actions_pending\` on \`wallet_actions\` (\`created_at_ms\`, \`id\`) where status = 'pending';
create unique index \`wallet_actions_nonce\` on \`wallet_actions\` (\`wallet_id\`, \`nonce\`) where nonce is not null;

create table \`wallet_action_steps\` (\`action_id\` text not null, \`position\` integer not null, \`type\` text not null, \`transaction_id\` text null, \`caip2\` text null, \`quote_id\` text null, \`delivery\` text null, \`exchange_status\` text null, \`hash\` text null, \`failure_reason\` text null, \`next_check_at_ms\` bigint null, primary key (\`action_id\`, \`position\`));
create index \`wallet_action_steps_by_transaction\` on \`wallet_action_steps\` (\`transaction_id\`) where transaction_id is not null;
create index \`wallet_action_steps_due\` on \`wallet_action_steps\` (\`next_check_at_ms\`) where next_check_at_ms is not null;

create table \`wallet_imports\` (\`id\` text not null primary key, \`app_id\` text not null, \`chain_type\` text not null, \`address\` text not null, \`sealed_secret\` blob not null, \`wrapped_data_key\` blob not null, \`master_key_id\` text not null, \`expires_at_ms\` bigint not null);
create unique index \`wallet_imports_address\` on \`wallet_imports\` (\`app_id\`, \`chain_type\`, \`address\`);

create table \`wallet_keys\` (\`wallet_id\` text not null primary key, \`sealed_secret\` blob not null, \`wrapped_data_key\` blob not null, \`master_key_id\` text not null, \`entropy_type\` text not null, \`derivation_path\` text null, \`wallet_index\` integer null);
create index \`wallet_keys_by_master_key\` on \`wallet_keys\` (\`master_key_id\`);

create table \`wallet_signers\` (\`wallet_id\` text not null, \`position\` integer not null, \`signer_id\` text not null, \`override_policy_id\` text null, primary key (\`wallet_id\`, \`position\`));
create index \`wallet_signers_by_signer\` on \`wallet_signers\` (\`signer_id\`);
create index \`wallet_signers_by_policy\` on \`wallet_signers\` (\`override_policy_id\`) where override_policy_id is not null;

create table \`wallet_uses\` (\`sequence\` integer not null primary key autoincrement, \`app_id\` text not null, \`wallet_id\` text not null, \`operation\` text not null, \`method\` text not null, \`request_id\` text not null, \`judged_at_ms\` bigint not null, \`decision\` text not null, \`policy_ids\` text not null, \`request\` text null, \`trace_id\` text null, \`trace\` text null);
create index \`wallet_uses_by_wallet\` on \`wallet_uses\` (\`wallet_id\`, \`sequence\`);
create index \`wallet_uses_by_trace\` on \`wallet_uses\` (\`trace_id\`) where trace_id is not null;
create index \`wallet_uses_denied_request\` on \`wallet_uses\` (\`request_id\`) where trace_id is not null;

create table \`webhook_deliveries\` (\`id\` text not null primary key, \`endpoint_id\` text not null, \`event_sequence\` bigint not null, \`event_id\` text not null, \`event_type\` text not null, \`status\` text not null, \`order_key\` text null, \`failures\` integer not null, \`attempt_count\` integer not null, \`attempts\` text not null, \`next_attempt_at_ms\` bigint null, \`created_at_ms\` bigint not null, \`finished_at_ms\` bigint null);
create index \`webhook_deliveries_by_endpoint\` on \`webhook_deliveries\` (\`endpoint_id\`, \`event_sequence\`);
create index \`webhook_deliveries_due\` on \`webhook_deliveries\` (\`endpoint_id\`, \`next_attempt_at_ms\`, \`event_sequence\`) where next_attempt_at_ms is not null;
create index \`webhook_deliveries_in_order\` on \`webhook_deliveries\` (\`endpoint_id\`, \`order_key\`, \`event_sequence\`) where order_key is not null;
create index \`webhook_deliveries_by_event\` on \`webhook_deliveries\` (\`event_sequence\`);
create index \`webhook_deliveries_finished\` on \`webhook_deliveries\` (\`finished_at_ms\`) where finished_at_ms is not null;

create table \`webhook_endpoints\` (\`id\` text not null primary key, \`app_id\` text not null, \`url\` text not null, \`description\` text null, \`event_types\` text not null, \`status\` text not null, \`disabled_reason\` text null, \`after_sequence\` bigint not null, \`failing_since_ms\` bigint null, \`failing_day_count\` integer not null, \`last_failing_day\` integer not null, \`next_due_at_ms\` bigint null, \`lease_owner\` text null, \`leased_until_ms\` bigint null, \`created_at_ms\` bigint not null, \`updated_at_ms\` bigint not null);
create index \`webhook_endpoints_by_app\` on \`webhook_endpoints\` (\`app_id\`, \`created_at_ms\`, \`id\`);
create index \`webhook_endpoints_due\` on \`webhook_endpoints\` (\`next_due_at_ms\`) where next_due_at_ms is not null;

create table \`webhook_secrets\` (\`id\` text not null primary key, \`endpoint_id\` text not null, \`app_id\` text not null, \`sealed_secret\` blob not null, \`wrapped_data_key\` blob not null, \`master_key_id\` text not null, \`created_at_ms\` bigint not null, \`expires_at_ms\` bigint null);
create index \`webhook_secrets_by_endpoint\` on \`webhook_secrets\` (\`endpoint_id\`);
`,
};
