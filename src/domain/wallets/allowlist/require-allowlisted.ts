import { ApiError } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { findApp } from '../../access/apps/find-app.ts';
import { AllowlistEntryEntity } from './allowlist-entry.entity.ts';

/** An account used to log in, in its stored form. */
export interface LoginAccount {
  readonly type: string;
  /** Lower-case e-mail address, phone number in international form, or canonical wallet address. */
  readonly subject: string;
}

/**
 * Refuses a login unless one of the accounts is on the app's allowlist, if the setting `allowlist_enabled` is on. The
 * first login by an entry marks it as accepted.
 *
 * CHOICE: any one account of the user is enough. Only email, phone and wallet accounts can be on the list.
 *
 * @throws ApiError allowlist_rejected
 */
export async function requireAllowlisted(
  context: Pick<OperationContext, 'app' | 'em' | 'nowMs'>,
  accounts: readonly LoginAccount[],
): Promise<void> {
  const { settings } = await findApp(context.em, context.app.id);
  if (settings.allowlist_enabled !== true) return;
  for (const { type, value } of accounts.flatMap(entriesFor)) {
    const entry = await context.em.findOne(AllowlistEntryEntity, { appId: context.app.id, type, value });
    if (entry === null) continue;
    entry.acceptedAtMs ??= context.nowMs;
    await context.em.flush();
    return;
  }
  throw new ApiError('allowlist_rejected');
}

/** The entries that would admit an account. */
function entriesFor({ type, subject }: LoginAccount): { type: string; value: string }[] {
  if (type === 'email') {
    const domain = subject.slice(subject.lastIndexOf('@') + 1);
    return [
      { type: 'email', value: subject },
      { type: 'emailDomain', value: domain },
    ];
  }
  return type === 'phone' || type === 'wallet' ? [{ type, value: subject }] : [];
}
