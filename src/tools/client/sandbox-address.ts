import { readFileSync } from 'node:fs';
import { acmeApp } from '../../../mocks/apps.ts';
import { readClientSettings } from '../../config/client.ts';
import { clientSettings } from '../../config/settings.ts';
import { StartError } from '../../config/start-error.ts';
import { findRunningSandbox, listRunningSandboxes } from './running-sandboxes.ts';

/**
 * How to find a running sandbox. Every field is optional, because a running sandbox writes a file by which commands
 * find it.
 */
export interface SandboxAddress {
  readonly url?: string;
  /** The path of the file that `custos sandbox --ready-file` writes. */
  readonly readyFile?: string;
  /** The path of a PEM file with the certificate authority to trust. */
  readonly caFile?: string;
  /** The folder of `custos sandbox --data`, which contains its certificate. */
  readonly data?: string;
}

/** Thrown when no sandbox responds at the address. It may be starting or stopping. */
export class SandboxUnavailableError extends StartError {}

/** The URL of a sandbox, and the credentials of the app with which it was started. */
export interface SandboxPlace {
  readonly url: string;
  readonly caFile?: string;
  readonly appId: string;
  readonly appSecret: string;
  /** The word that clients use in header names in place of `service`. */
  readonly prefix: string;
  /** The token for the control plane, which callers on other machines need. */
  readonly controlToken?: string;
  /** The base URL of the JSON-RPC of its simulated chains. Append a slash and the name of a chain. */
  readonly rpcUrl?: string | undefined;
  /** Whether several sandboxes run, and only the default port distinguishes this one. */
  readonly isGuess?: boolean;
}

export const DEFAULT_URL = 'https://127.0.0.1:4010';

/** The values of a sandbox that was started with default settings. */
const defaults = { appId: acmeApp.id, appSecret: acmeApp.secret, prefix: 'service' };

/**
 * Finds the sandbox that a command means: by the command's options, then by environment variables (`custos env`),
 * then by the files of running sandboxes.
 *
 * @throws SandboxUnavailableError, StartError
 */
export function locateSandbox({ url, readyFile, caFile, data }: SandboxAddress): SandboxPlace {
  const { controlToken } = readClientSettings();
  const given = {
    ...(caFile === undefined ? {} : { caFile }),
    ...(controlToken === undefined ? {} : { controlToken }),
  };
  if (readyFile !== undefined) {
    const { url: ready, ...rest } = readReadyFile(readyFile);
    return { ...rest, url: url ?? ready, ...given };
  }
  const settings = url === undefined && data === undefined ? readClientSettings() : {};
  if (settings.url !== undefined) return { ...defaults, ...settings, url: settings.url, ...given };
  const found = url === undefined ? findRunningSandbox(data) : undefined;
  const running =
    url === undefined ? found : listRunningSandboxes().find((each) => each.base_url === new URL(url).origin);
  if (running === undefined) return { ...defaults, url: url ?? DEFAULT_URL, ...given };
  return {
    url: url ?? running.base_url,
    // If both a folder and a URL are given, only the certificate is taken from the folder.
    ...(url !== undefined && data !== undefined ? {} : { caFile: running.ca_file }),
    ...{ appId: running.app_id, appSecret: running.app_secret, prefix: running.prefix },
    ...(running.control_token === undefined ? {} : { controlToken: running.control_token }),
    ...(running.rpc_url === undefined ? {} : { rpcUrl: running.rpc_url }),
    ...{ isGuess: found?.isGuess ?? false, ...given },
  };
}

function readReadyFile(file: string): SandboxPlace {
  let ready: Partial<
    Record<'ca_file' | 'app_id' | 'app_secret' | 'prefix' | 'control_token' | 'rpc_url', string>
  > & {
    base_url: string;
  };
  try {
    ready = JSON.parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    const isAbsent = (cause as NodeJS.ErrnoException).code === 'ENOENT';
    if (!isAbsent) throw new StartError(`expected a ready file, got \`${file}\``, { cause });
    throw new SandboxUnavailableError(`no sandbox is ready: \`${file}\` does not exist`, { cause });
  }
  if (!URL.canParse(ready?.base_url)) throw new StartError(`expected a ready file, got \`${file}\``);
  const { base_url: url, ca_file: caFile } = ready;
  // The ready file of `custos verify` names no app, because only the target server knows its apps.
  const { app_id: appId = defaults.appId, app_secret: appSecret = defaults.appSecret } = ready;
  const place = {
    ...{ url, appId, appSecret, prefix: ready.prefix ?? defaults.prefix },
    ...(ready.control_token === undefined ? {} : { controlToken: ready.control_token }),
    ...(ready.rpc_url === undefined ? {} : { rpcUrl: ready.rpc_url }),
  };
  return caFile === undefined ? place : { ...place, caFile };
}

/**
 * Returns the environment variables that direct programs to a sandbox. `NODE_EXTRA_CA_CERTS` makes Node.js trust its
 * certificate. The corresponding variables of other runtimes would replace all other authorities, so users have to
 * set them on purpose.
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
