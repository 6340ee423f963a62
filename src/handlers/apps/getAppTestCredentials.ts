import { readAppSettings } from '../../domain/access/apps/app-settings.ts';
import { findApp } from '../../domain/access/apps/find-app.ts';
import { openTestCode } from '../../domain/access/apps/test-accounts.ts';
import { readSafeguards } from '../../domain/base/safeguards/read-safeguards.ts';
import { notFound } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getAppTestCredentials'> = async ({ path }, context) => {
  if (path.app_id !== context.app.id) throw notFound('App');
  const { settings } = await findApp(context.em, context.app.id);
  const { block_test_logins: areBlocked } = await readSafeguards(context);
  if (areBlocked) return { data: [] };
  const data = await Promise.all(
    readAppSettings(settings).test_accounts.map(async (account) => ({
      id: account.id,
      email: account.email,
      phone_number: account.phone_number,
      otp_code: await openTestCode(context.vault, context.app.id, account),
      created_at: new Date(account.created_at_ms).toISOString(),
      updated_at: new Date(account.updated_at_ms).toISOString(),
    })),
  );
  return { data };
};
