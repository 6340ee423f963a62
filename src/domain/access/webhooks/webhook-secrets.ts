import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Selectable } from 'kysely';
import { formatWebhookSecret } from '../../../crypto/webhook-signature.ts';
import { ApiError } from '../../../errors.ts';
import type { RotateWebhookSecretRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { KeyVault } from '../../../ports/key-vault.ts';
import { announceDelivery } from '../../base/events/record-event.ts';
import { webhookSecretBinding } from '../../base/sealed-keys/seal-bindings.ts';
import type { Tables } from '../../tables.ts';
import { findWebhookEndpointForUpdate } from './find-webhook-endpoint.ts';
import type { StoredWebhookEndpoint } from './webhook-endpoint.entity.ts';
import { WebhookSecretEntity } from './webhook-secret.entity.ts';

// HOT: delivery runs for every event and endpoint (bench `webhooks`).

/** A row of `webhook_secrets`, columns as they are stored. */
export type SecretRow = Selectable<Tables['webhook_secrets']>;

const columns = [
  'id',
  'endpoint_id',
  'app_id',
  'sealed_secret',
  'wrapped_data_key',
  'master_key_id',
  'created_at_ms',
  'expires_at_ms',
] as const satisfies readonly (keyof SecretRow)[];

const SECRET_BYTES = 32;
const DEFAULT_OVERLAP_SECONDS = 86_400;
/** CHOICE: limited, because every valid secret adds a signature to each request. */
const MAX_SECRETS = 5;

/** Creates and seals a new secret of an endpoint. Returns its text for the only response that contains it. */
export async function createWebhookSecret(context: OperationContext, endpointId: string): Promise<string> {
  const secretBytes = context.entropy.bytes(SECRET_BYTES);
  const id = context.ids.cuid2();
  try {
    const sealed = await context.vault.seal(
      secretBytes,
      webhookSecretBinding({ id, app_id: context.app.id }),
    );
    context.em.create(WebhookSecretEntity, {
      id,
      endpointId,
      appId: context.app.id,
      sealedSecret: Buffer.from(sealed.sealedSecret),
      wrappedDataKey: Buffer.from(sealed.wrappedDataKey),
      masterKeyId: sealed.masterKeyId,
      createdAtMs: context.nowMs,
      expiresAtMs: null,
    });
    await context.em.flush();
    return formatWebhookSecret(secretBytes);
  } finally {
    secretBytes.fill(0);
  }
}

/**
 * Creates a new secret. Earlier ones continue to sign during the overlap.
 *
 * CHOICE: the default overlap is one day. With an overlap of 0, earlier secrets stop signing immediately.
 *
 * @throws ApiError not_found; invalid_state when too many secrets are valid at once.
 */
export async function rotateWebhookSecret(
  context: OperationContext,
  endpointId: string,
  { overlap_seconds: overlapSeconds = DEFAULT_OVERLAP_SECONDS }: RotateWebhookSecretRequest,
): Promise<{ endpoint: StoredWebhookEndpoint; secret: string }> {
  const endpoint = await findWebhookEndpointForUpdate(context, endpointId);
  const untilMs = context.nowMs + overlapSeconds * 1000;
  const earlier = await context.em.find(WebhookSecretEntity, { endpointId: endpoint.id });
  for (const secret of earlier) secret.expiresAtMs = Math.min(secret.expiresAtMs ?? untilMs, untilMs);
  const expired = earlier.filter(({ expiresAtMs }) => expiresAtMs! <= context.nowMs);
  for (const secret of expired) context.em.remove(secret);
  if (earlier.length - expired.length >= MAX_SECRETS) {
    throw new ApiError(
      'invalid_state',
      `${MAX_SECRETS} secrets of the endpoint are valid; wait for one to expire or rotate with an overlap of 0`,
    );
  }
  endpoint.updatedAtMs = context.nowMs;
  const secret = await createWebhookSecret(context, endpoint.id);
  // A running worker must sign with it.
  announceDelivery(context.em);
  return { endpoint, secret };
}

/** The valid secrets of an endpoint, oldest first. */
export function readWebhookSecrets(
  em: SqlEntityManager,
  endpointId: string,
  nowMs: number,
): Promise<SecretRow[]> {
  return em
    .getKysely<Tables>()
    .selectFrom('webhook_secrets')
    .select(columns)
    .where('endpoint_id', '=', endpointId)
    .where(({ or, eb }) => or([eb('expires_at_ms', 'is', null), eb('expires_at_ms', '>', nowMs)]))
    .orderBy('created_at_ms')
    .orderBy('id')
    .execute();
}

/** Opens a stored secret. */
export async function openWebhookSecret(vault: KeyVault, row: SecretRow): Promise<string> {
  const sealed = {
    sealedSecret: row.sealed_secret,
    wrappedDataKey: row.wrapped_data_key,
    masterKeyId: row.master_key_id,
  };
  return formatWebhookSecret(await vault.open(sealed, webhookSecretBinding(row)));
}
