import { notFound } from '../../../errors.ts';
import type { OAuthGrant as GrantView } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import { type OauthGrant, OauthGrantEntity } from '../tokens/oauth-grant.entity.ts';
import { UserKeyEntity } from '../user-keys/user-key.entity.ts';

/** CHOICE: the list has no pages, so it ends here. */
const MAX_LISTED = 1_000;

/** The grants in force, newest first: those of the caller, or all of the app for its secret. */
export async function listGrants({ app, em, proof }: OperationContext): Promise<GrantView[]> {
  const grants = await em.find(
    OauthGrantEntity,
    { appId: app.id, ...(proof.userId === undefined ? {} : { userId: proof.userId }), revokedAtMs: null },
    { orderBy: { createdAtMs: 'desc', id: 'desc' }, limit: MAX_LISTED },
  );
  return grants.map((grant) => ({
    id: grant.id,
    grant_type: 'device_code',
    created_at: new Date(grant.createdAtMs).toISOString(),
    last_used_at: new Date(grant.lastUsedAtMs).toISOString(),
  }));
}

/**
 * Revokes a grant of the caller, or any of the app for its secret.
 *
 * @throws ApiError not_found also for a grant that was already revoked.
 */
export async function revokeGrant(context: OperationContext, grantId: string): Promise<void> {
  const { app, em, proof } = context;
  const where = { id: lookupKey(grantId), appId: app.id };
  const grant = await em.findOne(OauthGrantEntity, where, lockForUpdate);
  const isOwn = proof.userId === undefined || grant?.userId === proof.userId;
  if (grant === null || grant.revokedAtMs !== null || !isOwn) throw notFound('Grant');
  await endGrant(context, grant);
}

/**
 * Ends a grant: nothing refreshes it, and no key signs for it any more. CHOICE: the keys end at once, although the access
 * token that they were obtained with lives on for up to an hour.
 */
export async function endGrant(
  { em, nowMs }: Pick<OperationContext, 'em' | 'nowMs'>,
  grant: OauthGrant,
): Promise<void> {
  grant.revokedAtMs = nowMs;
  await em.flush();
  await em.nativeDelete(UserKeyEntity, { sessionId: grant.id });
}
