import { clientSettings } from '../../config/settings.ts';
import type { SandboxPlace } from './sandbox-address.ts';

/**
 * The environment variables that point programs to a sandbox. Node.js trusts its certificate by `NODE_EXTRA_CA_CERTS`;
 * the variables of other runtimes replace all other authorities, so they are left to the user.
 */
export function clientEnvironment(place: SandboxPlace): Record<string, string> {
  const { url, appId, appSecret, caFile, prefix, controlToken, rpcUrl } = place;
  return {
    [clientSettings.url.variable]: url,
    [clientSettings.appId.variable]: appId,
    [clientSettings.appSecret.variable]: appSecret,
    [clientSettings.prefix.variable]: prefix,
    ...(rpcUrl === undefined ? {} : { [clientSettings.rpcUrl.variable]: rpcUrl }),
    ...(controlToken === undefined ? {} : { [clientSettings.controlToken.variable]: controlToken }),
    ...(caFile === undefined
      ? {}
      : { [clientSettings.caFile.variable]: caFile, NODE_EXTRA_CA_CERTS: caFile }),
  };
}
