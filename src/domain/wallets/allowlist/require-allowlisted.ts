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
 * Refuses a login by accounts of which none is on the app's allowlist, while that counts (setting
 * `allowlist_enabled`). An entry that admits somebody for the first time counts as accepted now.
 *
 * CHOICE: any one account of the user is enough, and accounts of other kinds than email, phone and wallet are on no
 * list.
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
