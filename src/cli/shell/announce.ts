import type { RunningSandbox } from '../../compose/local-server.ts';
import type { SandboxConfig } from '../../config/config.ts';
import { packageVersion } from '../../config/package-root.ts';
import { announceSandbox } from '../../tools/client/running-sandboxes.ts';

/**
 * Writes a file by which this user's other commands find the sandbox. Returns a function that removes it. If the file
 * cannot be written, the commands need --url.
 */
export function announce(
  { baseUrl, caFile, appId, appSecret, controlToken, rpcUrl }: RunningSandbox,
  { dataFolder, prefix }: Pick<SandboxConfig, 'dataFolder' | 'prefix'>,
): () => void {
  try {
    return announceSandbox({
      base_url: baseUrl,
      ca_file: caFile,
      data: dataFolder ?? null,
      app_id: appId,
      app_secret: appSecret,
      prefix,
      control_token: controlToken,
      rpc_url: rpcUrl,
      version: packageVersion(),
    });
  } catch {
    return () => undefined;
  }
}
