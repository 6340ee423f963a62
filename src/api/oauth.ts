import { authorizeDevice, verifyDevice } from '../domain/wallets/oauth/device-codes.ts';
import { exchangeToken } from '../domain/wallets/oauth/exchange-token.ts';
import { listGrants, oauthMetadata, revokeGrant } from '../domain/wallets/oauth/oauth-grants.ts';
import type { Handler, OpenHandler } from '../ports/operation-context.ts';

export const authorizeOauthDevice: Handler<'authorizeOauthDevice'> = (_input, context) =>
  authorizeDevice(context);

export const verifyOauthDevice: Handler<'verifyOauthDevice'> = async ({ body }, context) => {
  await verifyDevice(context, body);
  return { success: true };
};

export const listOauthGrants: Handler<'listOauthGrants'> = async (_input, context) => ({
  data: await listGrants(context),
});

export const revokeOauthGrant: Handler<'revokeOauthGrant'> = async ({ path }, context) => {
  await revokeGrant(context, path.grant_id);
  return { success: true };
};

export const exchangeOauthToken: Handler<'exchangeOauthToken'> = ({ body }, context) =>
  exchangeToken(context, body);

export const getOauthMetadata: OpenHandler<'getOauthMetadata'> = async (_input, { proof }) =>
  oauthMetadata(proof);
