import { LockMode } from '@mikro-orm/core';
import type { OperationContext } from '../../../operation-context.ts';
import { OauthGrantEntity } from './oauth-grant.entity.ts';
import { UserSessionEntity } from './user-session.entity.ts';

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
  const where = { id: sessionId, appId: app.id };
  const locked = { lockMode: LockMode.PESSIMISTIC_READ, refresh: true } as const;
  const session =
    (await em.findOne(OauthGrantEntity, where, locked)) ??
    (await em.findOne(UserSessionEntity, where, locked));
  return session !== null && session.revokedAtMs !== null;
}
