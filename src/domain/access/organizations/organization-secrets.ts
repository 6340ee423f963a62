import { hash } from 'node:crypto';
import { notFound } from '../../../errors.ts';
import type { CreateOrganizationSecretResponse, OrganizationSecretView } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { readPublicKey } from '../key-quorums/resolve-owner.ts';
import { OrganizationSecretEntity, type StoredOrganizationSecret } from './organization.entity.ts';
import { findOrganization, type OrganizationContext } from './organization.ts';

/**
 * Creates a secret for an organization. Only this result contains the secret itself, which is not stored.
 *
 * @throws ApiError not_found
 */
export async function createOrganizationSecret(
  context: OperationContext,
  organizationId: string,
): Promise<CreateOrganizationSecretResponse> {
  const organization = await findOrganization(context, organizationId);
  // For a secret of 32 random bytes, plain SHA-256 is as safe as a slow password hash.
  const secret = `org_secret_${Buffer.from(context.entropy.bytes(32)).toString('base64url')}`;
  const stored = context.em.create(OrganizationSecretEntity, {
    id: context.ids.uuid(),
    organizationId: organization.id,
    secretHash: hash('sha256', secret),
    lastFour: secret.slice(-4),
    signingPublicKey: null,
    createdAtMs: context.nowMs,
    revokedAtMs: null,
  });
  await context.em.flush();
  return { ...secretView(stored), organization_secret: secret };
}

/** CHOICE: the list has no pages, so its length is limited. */
const MAX_LISTED = 1_000;

/**
 * Lists the newest secrets of an organization, newest first, including revoked secrets.
 *
 * @throws ApiError not_found
 */
export async function listOrganizationSecrets(
  context: OrganizationContext,
  organizationId: string,
): Promise<OrganizationSecretView[]> {
  const organization = await findOrganization(context, organizationId);
  const secrets = await context.em.find(
    OrganizationSecretEntity,
    { organizationId: organization.id },
    { orderBy: { createdAtMs: 'desc', id: 'desc' }, limit: MAX_LISTED },
  );
  return secrets.map(secretView);
}

/**
 * Revokes a secret. Revoking a revoked secret has no effect.
 *
 * @throws ApiError not_found
 */
export async function revokeOrganizationSecret(
  context: OperationContext,
  organizationId: string,
  secretId: string,
): Promise<void> {
  const secret = await findSecret(context, organizationId, secretId);
  if (secret.revokedAtMs !== null) return;
  secret.revokedAtMs = context.nowMs;
  await context.em.flush();
}

/**
 * Sets the P-256 key that must sign requests with a secret; null removes the requirement.
 *
 * @throws ApiError not_found, also for a revoked secret; invalid_data for an invalid key.
 */
export async function bindOrganizationSecret(
  context: OperationContext,
  organizationId: string,
  { secret_id, signing_public_key }: { secret_id: string; signing_public_key: string | null },
): Promise<void> {
  const secret = await findSecret(context, organizationId, secret_id);
  if (secret.revokedAtMs !== null) throw notFound('Organization secret');
  secret.signingPublicKey =
    signing_public_key === null ? null : readPublicKey(signing_public_key, '/signing_public_key');
  await context.em.flush();
}

/**
 * Finds a secret of an organization and locks it until the transaction ends.
 *
 * @throws ApiError not_found
 */
async function findSecret(
  context: OrganizationContext,
  organizationId: string,
  secretId: string,
): Promise<StoredOrganizationSecret> {
  const organization = await findOrganization(context, organizationId);
  const secret = /^[0-9a-f-]{36}$/.test(secretId)
    ? await context.em.findOne(
        OrganizationSecretEntity,
        { id: secretId, organizationId: organization.id },
        lockForUpdate,
      )
    : null;
  if (secret === null) throw notFound('Organization secret');
  return secret;
}

function secretView(secret: StoredOrganizationSecret): OrganizationSecretView {
  return {
    id: secret.id,
    last_four: secret.lastFour,
    created_at: new Date(secret.createdAtMs).toISOString(),
    revoked_at: secret.revokedAtMs === null ? null : new Date(secret.revokedAtMs).toISOString(),
    signing_public_key: secret.signingPublicKey,
  };
}
