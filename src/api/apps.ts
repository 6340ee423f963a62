import { appSettingsView, readAppSettings } from '../domain/access/apps/app-settings.ts';
import { findApp, requireOwnApp } from '../domain/access/apps/find-app.ts';
import { openTestCode } from '../domain/access/apps/test-account-codes.ts';
import { readSafeguards } from '../domain/base/safeguards/safeguards.ts';
import { getAppGasSpend as getAppGasSpendVerb } from '../domain/money/gas-spend/gas-spend.ts';
import {
  createAllowlistEntry as createAllowlistEntryVerb,
  deleteAllowlistEntry as deleteAllowlistEntryVerb,
  listAllowlistEntries as listAllowlistEntriesVerb,
} from '../domain/wallets/allowlist/allowlist.ts';
import { currentVerificationKey, listSigningKeys } from '../domain/wallets/tokens/access-tokens.ts';
import { notFound } from '../errors.ts';
import type { Handler, OpenHandler } from '../ports/operation-context.ts';

export const getAppGasSpend: Handler<'getAppGasSpend'> = async ({ query }, context) =>
  getAppGasSpendVerb(context, query);

export const getApp: Handler<'getApp'> = async ({ path }, context) => {
  requireOwnApp(context, path.app_id);
  const app = await findApp(context.em, path.app_id);
  return appSettingsView(app, await currentVerificationKey(context, app.id));
};

export const deleteAllowlistEntry: Handler<'deleteAllowlistEntry'> = async ({ path, body }, context) => {
  requireOwnApp(context, path.app_id);
  await deleteAllowlistEntryVerb(context, body);
  return { message: 'Allowlist entry removed' };
};

export const listAllowlistEntries: Handler<'listAllowlistEntries'> = async ({ path }, context) => {
  requireOwnApp(context, path.app_id);
  return listAllowlistEntriesVerb(context);
};

export const createAllowlistEntry: Handler<'createAllowlistEntry'> = async ({ path, body }, context) => {
  requireOwnApp(context, path.app_id);
  return createAllowlistEntryVerb(context, body);
};

export const getAppJwks: OpenHandler<'getAppJwks'> = async ({ path }, context) => {
  const app = await findApp(context.em, path.app_id);
  return { keys: await listSigningKeys(context, app.id) };
};

export const getAppTestCredentials: Handler<'getAppTestCredentials'> = async ({ path }, context) => {
  if (path.app_id !== context.app.id) throw notFound('App');
  const { settings } = await findApp(context.em, context.app.id);
  const { block_test_logins: areBlocked } = await readSafeguards(context);
  if (areBlocked) return { data: [] };
  const data = await Promise.all(
    readAppSettings(settings).test_accounts.map(async (account) => ({
      id: account.id,
      email: account.email,
      phone_number: account.phone_number,
      otp_code: await openTestCode(context.keyStore, context.app.id, account),
      created_at: new Date(account.created_at_ms).toISOString(),
      updated_at: new Date(account.updated_at_ms).toISOString(),
    })),
  );
  return { data };
};
