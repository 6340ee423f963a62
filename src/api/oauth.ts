import { authorizeDevice, verifyDevice } from '../domain/wallets/oauth/device-codes.ts';
import { exchangeToken, listGrants, revokeGrant } from '../domain/wallets/oauth/oauth-grants.ts';
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

/** Returns the metadata of the authorization server (RFC 8414 section 2), with URLs under the host of the request. */
export const getOauthMetadata: OpenHandler<'getOauthMetadata'> = async (_input, { proof: { urlOf } }) => ({
  issuer: urlOf(''),
  token_endpoint: urlOf('/api/oauth/v2/token'),
  device_authorization_endpoint: urlOf('/api/oauth/v2/device_authorization'),
  response_types_supported: [],
  grant_types_supported: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
  token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'none'],
  service_documentation: urlOf('/docs'),
});
