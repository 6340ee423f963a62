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
import { type EndpointRow, findWebhookEndpointForUpdate } from './find-webhook-endpoint.ts';

/** A row of `webhook_secrets`, columns as they are stored. */
export type SecretRow = Selectable<Tables['webhook_secrets']>;

const SECRET_BYTES = 32;
const DEFAULT_OVERLAP_SECONDS = 86_400;
/** CHOICE: every secret adds a signature to each request, so that there must be an end to them. */
const MAX_SECRETS = 5;

/** Makes the newest secret of an endpoint, stores it sealed, and returns its text for the one answer that holds it. */
export async function createWebhookSecret(context: OperationContext, endpointId: string): Promise<string> {
  const secretBytes = context.entropy.bytes(SECRET_BYTES);
  const id = context.ids.cuid2();
  try {
    const sealed = await context.vault.seal(
      secretBytes,
      webhookSecretBinding({ id, app_id: context.app.id }),
    );
    await context.em
      .getKysely<Tables>()
      .insertInto('webhook_secrets')
      .values({
        id,
        endpoint_id: endpointId,
        app_id: context.app.id,
        sealed_secret: sealed.sealedSecret,
        wrapped_data_key: sealed.wrappedDataKey,
        master_key_id: sealed.masterKeyId,
        created_at_ms: context.nowMs,
        expires_at_ms: null,
      })
      .execute();
    return formatWebhookSecret(secretBytes);
  } finally {
    secretBytes.fill(0);
  }
}

/**
 * Makes a new secret; earlier ones go on to sign for the overlap.
 *
 * CHOICE: the overlap is a day unless told otherwise; without one, earlier secrets are useless at once.
 *
 * @throws ApiError not_found; invalid_state when too many secrets are valid at once.
 */
export async function rotateWebhookSecret(
  context: OperationContext,
  endpointId: string,
  { overlap_seconds: overlapSeconds = DEFAULT_OVERLAP_SECONDS }: RotateWebhookSecretRequest,
): Promise<{ endpoint: EndpointRow; secret: string }> {
  const endpoint = await findWebhookEndpointForUpdate(context, endpointId);
  const database = context.em.getKysely<Tables>();
  const untilMs = context.nowMs + overlapSeconds * 1000;
  await database
    .updateTable('webhook_secrets')
    .set({ expires_at_ms: untilMs })
    .where('endpoint_id', '=', endpoint.id)
    .where(({ or, eb }) => or([eb('expires_at_ms', 'is', null), eb('expires_at_ms', '>', untilMs)]))
    .execute();
  await database
    .deleteFrom('webhook_secrets')
    .where('endpoint_id', '=', endpoint.id)
    .where('expires_at_ms', '<=', context.nowMs)
    .execute();
  const { count } = await database
    .selectFrom('webhook_secrets')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('endpoint_id', '=', endpoint.id)
    .executeTakeFirstOrThrow();
  if (Number(count) >= MAX_SECRETS) {
    throw new ApiError(
      'invalid_state',
      `${MAX_SECRETS} secrets of the endpoint are valid; wait for one to expire or rotate with an overlap of 0.`,
    );
  }
  const secret = await createWebhookSecret(context, endpoint.id);
  await database
    .updateTable('webhook_endpoints')
    .set({ updated_at_ms: context.nowMs })
    .where('id', '=', endpoint.id)
    .execute();
  // Whoever sends to it is to sign with it.
  announceDelivery(context.em);
  return { endpoint: { ...endpoint, updated_at_ms: context.nowMs }, secret };
}

/** The secrets of an endpoint that are valid, oldest first. */
export function readWebhookSecrets(
  em: SqlEntityManager,
  endpointId: string,
  nowMs: number,
): Promise<SecretRow[]> {
  return em
    .getKysely<Tables>()
    .selectFrom('webhook_secrets')
    .selectAll()
    .where('endpoint_id', '=', endpointId)
    .where(({ or, eb }) => or([eb('expires_at_ms', 'is', null), eb('expires_at_ms', '>', nowMs)]))
    .orderBy('created_at_ms')
    .orderBy('id')
    .execute();
}

/** The text of a stored secret, to sign with. */
export function openWebhookSecret(vault: KeyVault, row: SecretRow): Promise<string> {
  const sealed = {
    sealedSecret: row.sealed_secret,
    wrappedDataKey: row.wrapped_data_key,
    masterKeyId: row.master_key_id,
  };
  return vault.withSecret(sealed, webhookSecretBinding(row), formatWebhookSecret);
}
