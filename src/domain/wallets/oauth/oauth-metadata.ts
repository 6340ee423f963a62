import type { OAuthMetadata } from '../../../generated/schemas.ts';
import type { RequestProof } from '../../../operation-context.ts';

/** The metadata of the server under the host that the request was sent to. Source: RFC 8414 section 2. */
export function oauthMetadata({ urlOf }: Pick<RequestProof, 'urlOf'>): OAuthMetadata {
  return {
    issuer: urlOf(''),
    token_endpoint: urlOf('/api/oauth/v2/token'),
    device_authorization_endpoint: urlOf('/api/oauth/v2/device_authorization'),
    response_types_supported: [],
    grant_types_supported: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'none'],
    service_documentation: urlOf('/docs'),
  };
}
