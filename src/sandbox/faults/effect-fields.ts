import type { AddSandboxFaultRequest, SandboxFaultEffect } from '../generated/schemas.ts';

/** A field that only rules with some effects use. */
export type FaultField = Exclude<keyof AddSandboxFaultRequest, 'effect' | 'probability' | 'count'>;

const requestFields: readonly FaultField[] = ['operation', 'app_id', 'wallet_id'];
const transactionFields: readonly FaultField[] = ['chain', 'wallet_id'];
const webhookFields: readonly FaultField[] = ['event_type', 'app_id', 'wallet_id'];

/** The fields that rules use, by the effect of the rule. */
export const fieldsOf: Readonly<Record<SandboxFaultEffect, readonly FaultField[]>> = {
  latency: [...requestFields, 'delay_ms', 'max_delay_ms'],
  error: [...requestFields, 'code', 'is_undocumented'],
  rate_limit: [...requestFields, 'retry_after_seconds', 'is_undocumented'],
  respond: [...requestFields, 'status', 'headers', 'body', 'is_undocumented'],
  cut_before_commit: requestFields,
  cut_after_commit: requestFields,
  truncated_body: requestFields,
  slow_body: [...requestFields, 'delay_ms', 'max_delay_ms'],
  transaction_revert: transactionFields,
  transaction_drop: transactionFields,
  transaction_delay: [...transactionFields, 'delay_ms', 'max_delay_ms'],
  transaction_reorganization: [...transactionFields, 'blocks'],
  webhook_duplicate: webhookFields,
  webhook_reorder: [...webhookFields, 'delay_ms', 'max_delay_ms'],
  webhook_delay: [...webhookFields, 'delay_ms', 'max_delay_ms'],
  webhook_bad_signature: webhookFields,
};
