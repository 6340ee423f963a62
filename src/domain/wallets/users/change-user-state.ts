import type { MfaMethod } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { findUserForUpdate, type StoredUser } from '../../access/user-records/find-user.ts';
import { recordEvent } from '../../base/events/record-event.ts';
import type { Tables } from '../../tables.ts';

// HOT: users are looked up and searched by prepared queries (bench `users`), so every write to them goes through
// Kysely.

/** State that users change in the app's own pages, and whether the app has frozen them. */
export interface UserState {
  /** The user's new MFA methods; existing ones keep their time. */
  readonly mfaMethods?: readonly MfaMethod[] | undefined;
  readonly hasAcceptedTerms?: boolean | undefined;
  readonly isGuest?: boolean | undefined;
  readonly isFrozen?: boolean | undefined;
}

/**
 * Sets a user's state; omitted members stay unchanged.
 *
 * @throws ApiError not_found
 */
export async function changeUserState(
  context: Pick<OperationContext, 'app' | 'em' | 'ids' | 'nowMs'>,
  userId: string,
  state: UserState,
): Promise<StoredUser> {
  const { row, linkedAccounts } = await findUserForUpdate(context, userId);
  const known: { type: MfaMethod; verified_at: number }[] = JSON.parse(row.mfa_methods);
  const wanted = [...new Set(state.mfaMethods ?? known.map(({ type }) => type))];
  const methods = wanted.map(
    (type) =>
      known.find((method) => method.type === type) ?? { type, verified_at: Math.floor(context.nowMs / 1000) },
  );
  const change = {
    mfa_methods: JSON.stringify(methods),
    has_accepted_terms: flag(state.hasAcceptedTerms, row.has_accepted_terms),
    is_guest: flag(state.isGuest, row.is_guest),
    frozen_at_ms:
      state.isFrozen === undefined
        ? row.frozen_at_ms
        : state.isFrozen
          ? (row.frozen_at_ms ?? context.nowMs)
          : null,
  };
  await context.em.getKysely<Tables>().updateTable('users').set(change).where('id', '=', row.id).execute();
  if (change.frozen_at_ms !== row.frozen_at_ms) await announceToIssuers(context, row.id);
  if (change.frozen_at_ms !== null && row.frozen_at_ms === null) await endSessions(context, row.id);
  for (const method of wanted.filter((type) => !known.some((old) => old.type === type))) {
    await recordEvent(context, {
      appId: context.app.id,
      type: 'mfa.enabled',
      payload: { user_id: row.id, method },
    });
  }
  for (const { type: method } of known.filter(({ type }) => !wanted.includes(type))) {
    await recordEvent(context, {
      appId: context.app.id,
      type: 'mfa.disabled',
      payload: { user_id: row.id, method },
    });
  }
  return { row: { ...row, ...change }, linkedAccounts };
}

/**
 * Ends a user's sessions for good, with the keys that were obtained in them: a user who is no longer frozen logs in
 * again. CHOICE: a device that the user has approved, but that has no tokens yet, gets none. Access tokens live on
 * for up to an hour, but no key is issued for one, and none approves a device.
 */
async function endSessions(
  { em, nowMs }: Pick<OperationContext, 'em' | 'nowMs'>,
  userId: string,
): Promise<void> {
  const database = em.getKysely<Tables>();
  await database.deleteFrom('user_keys').where('user_id', '=', userId).execute();
  for (const sessions of ['user_sessions', 'oauth_grants'] as const) {
    await database
      .updateTable(sessions)
      .set({ revoked_at_ms: nowMs })
      .where('user_id', '=', userId)
      .where('revoked_at_ms', 'is', null)
      .execute();
  }
  await database
    .updateTable('oauth_device_codes')
    .set({ status: 'denied' })
    .where('user_id', '=', userId)
    .where('status', '=', 'approved')
    .execute();
}

/** The cards of a frozen user cannot pay: a job reports it to their issuers. */
async function announceToIssuers(
  { em, nowMs }: Pick<OperationContext, 'em' | 'nowMs'>,
  userId: string,
): Promise<void> {
  await em
    .getKysely<Tables>()
    .updateTable('cards')
    .set({ next_check_at_ms: nowMs })
    .where('user_id', '=', userId)
    .where('status', '<>', 'canceled')
    .execute();
}

/** Booleans are stored as 0 and 1. */
function flag(wanted: boolean | undefined, stored: number): number {
  return wanted === undefined ? stored : Number(wanted);
}
