import { clientNames } from '../../config/client.ts';
import type { SandboxPlace } from './sandbox-address.ts';

/**
 * The environment variables that point programs to a sandbox. Node.js trusts its certificate by `NODE_EXTRA_CA_CERTS`;
 * the variables of other runtimes replace all other authorities, so they are left to the user.
 */
export function clientEnvironment(place: SandboxPlace): Record<string, string> {
  const { url, appId, appSecret, caFile, prefix, controlToken } = place;
  return {
    [clientNames.url]: url,
    [clientNames.appId]: appId,
    [clientNames.appSecret]: appSecret,
    [clientNames.prefix]: prefix,
    ...(controlToken === undefined ? {} : { [clientNames.controlToken]: controlToken }),
    ...(caFile === undefined ? {} : { [clientNames.caFile]: caFile, NODE_EXTRA_CA_CERTS: caFile }),
  };
}
