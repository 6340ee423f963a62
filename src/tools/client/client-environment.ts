import { clientSettings } from '../../config/settings.ts';
import type { SandboxPlace } from './sandbox-address.ts';

/**
 * The environment variables that direct programs to a sandbox. `NODE_EXTRA_CA_CERTS` makes Node.js trust its
 * certificate. The variables of other runtimes would replace all other authorities, so they are left to the user.
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
