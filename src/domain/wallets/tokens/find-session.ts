import { LockMode } from '@mikro-orm/core';
import type { OperationContext } from '../../../operation-context.ts';
import { OauthGrantEntity } from './oauth-grant.entity.ts';

type SessionContext = Pick<OperationContext, 'app' | 'em'>;

/** Whether a session is that of a device rather than of an ordinary login. */
export async function isDeviceSession({ app, em }: SessionContext, sessionId: string): Promise<boolean> {
  return (await em.count(OauthGrantEntity, { id: sessionId, appId: app.id })) > 0;
}

/**
 * Whether a session was revoked. Until the transaction ends it cannot be, so that nothing is made for it that outlives
 * it.
 */
export async function isRevokedSession({ app, em }: SessionContext, sessionId: string): Promise<boolean> {
  const grant = await em.findOne(
    OauthGrantEntity,
    { id: sessionId, appId: app.id },
    { lockMode: LockMode.PESSIMISTIC_READ, refresh: true },
  );
  return grant !== null && grant.revokedAtMs !== null;
}
