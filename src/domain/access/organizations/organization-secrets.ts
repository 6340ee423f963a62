import { hash } from 'node:crypto';
import type { Selectable } from 'kysely';
import { notFound } from '../../../errors.ts';
import type { CreateOrganizationSecretResponse, OrganizationSecretView } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { readPublicKey } from '../../base/public-keys/read-public-key.ts';
import type { Tables } from '../../tables.ts';
import { findOrganization, type OrganizationContext } from './find-organization.ts';

type SecretRow = Selectable<Tables['organization_secrets']>;

const columns = [
  'id',
  'organization_id',
  'secret_hash',
  'last_four',
  'signing_public_key',
  'created_at_ms',
  'revoked_at_ms',
] as const satisfies readonly (keyof SecretRow)[];

/**
 * Makes a secret for an organization. Only this answer ever holds its text.
 *
 * @throws ApiError not_found
 */
export async function createOrganizationSecret(
  context: OperationContext,
  organizationId: string,
): Promise<CreateOrganizationSecretResponse> {
  const organization = await findOrganization(context, organizationId);
  // 32 random bytes, so that a plain SHA-256 is as good as a slow password hash.
  const secret = `org_secret_${Buffer.from(context.entropy.bytes(32)).toString('base64url')}`;
  const row: SecretRow = {
    id: context.ids.uuid(),
    organization_id: organization.id,
    secret_hash: hash('sha256', secret),
    last_four: secret.slice(-4),
    signing_public_key: null,
    created_at_ms: context.nowMs,
    revoked_at_ms: null,
  };
  await context.em.getKysely<Tables>().insertInto('organization_secrets').values(row).execute();
  return { ...secretView(row), organization_secret: secret };
}

/**
 * Every secret of an organization, revoked ones included, newest first.
 *
 * @throws ApiError not_found
 */
export async function listOrganizationSecrets(
  context: OrganizationContext,
  organizationId: string,
): Promise<OrganizationSecretView[]> {
  const organization = await findOrganization(context, organizationId);
  const rows = await context.em
    .getKysely<Tables>()
    .selectFrom('organization_secrets')
    .select(columns)
    .where('organization_id', '=', organization.id)
    .orderBy('created_at_ms', 'desc')
    .orderBy('id', 'desc')
    .execute();
  return rows.map(secretView);
}

/**
 * Makes a secret useless for good; a second time changes nothing.
 *
 * @throws ApiError not_found
 */
export async function revokeOrganizationSecret(
  context: OperationContext,
  organizationId: string,
  secretId: string,
): Promise<void> {
  const secret = await findSecret(context, organizationId, secretId);
  if (secret.revoked_at_ms !== null) return;
  await context.em
    .getKysely<Tables>()
    .updateTable('organization_secrets')
    .set({ revoked_at_ms: context.nowMs })
    .where('id', '=', secret.id)
    .where('revoked_at_ms', 'is', null)
    .execute();
}

/**
 * Sets the P-256 key that must sign with a secret; null for none.
 *
 * @throws ApiError not_found for a secret that is revoked as well; invalid_data for a key that is none.
 */
export async function bindOrganizationSecret(
  context: OperationContext,
  organizationId: string,
  { secret_id, signing_public_key }: { secret_id: string; signing_public_key: string | null },
): Promise<void> {
  const secret = await findSecret(context, organizationId, secret_id);
  if (secret.revoked_at_ms !== null) throw notFound('Organization secret');
  const key = signing_public_key === null ? null : readPublicKey(signing_public_key, '/signing_public_key');
  await context.em
    .getKysely<Tables>()
    .updateTable('organization_secrets')
    .set({ signing_public_key: key })
    .where('id', '=', secret.id)
    .execute();
}

async function findSecret(
  context: OrganizationContext,
  organizationId: string,
  secretId: string,
): Promise<SecretRow> {
  const organization = await findOrganization(context, organizationId);
  if (!/^[0-9a-f-]{36}$/.test(secretId)) throw notFound('Organization secret');
  const row = await context.em
    .getKysely<Tables>()
    .selectFrom('organization_secrets')
    .select(columns)
    .where('id', '=', secretId)
    .where('organization_id', '=', organization.id)
    .executeTakeFirst();
  if (row === undefined) throw notFound('Organization secret');
  return row;
}

function secretView(row: SecretRow): OrganizationSecretView {
  return {
    id: row.id,
    last_four: row.last_four,
    created_at: new Date(row.created_at_ms).toISOString(),
    revoked_at: row.revoked_at_ms === null ? null : new Date(row.revoked_at_ms).toISOString(),
    signing_public_key: row.signing_public_key,
  };
}
