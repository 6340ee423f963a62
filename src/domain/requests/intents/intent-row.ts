import type { Selectable } from 'kysely';
import type { Tables } from '../../tables.ts';

/** A row of `intents`, columns as they are stored. */
export type IntentRow = Omit<Selectable<Tables['intents']>, 'claimed_by'>;

/** Every column of `intents` that a view or verb reads. */
export const intentColumns = [
  'id',
  'app_id',
  'intent_type',
  'status',
  'operation_id',
  'path_parameters',
  'body',
  'url',
  'subject_id',
  'resource_id',
  'created_by_id',
  'created_at_ms',
  'updated_at_ms',
  'expires_at_ms',
  'request_expiry_ms',
  'ended_at_ms',
  'dismissal_reason',
  'authorization_details',
  'action_result',
  'awaited_action_id',
] as const satisfies readonly (keyof IntentRow)[];
