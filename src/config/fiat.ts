import type { KeyObject } from 'node:crypto';
import { type Environment, type Faults, isLoopback, readPublicKey, readText } from './checks.ts';
import { readerOf } from './setting.ts';
import { providerSettings, variableNames } from './settings.ts';

/** One environment of the fiat provider `bridge`. */
export interface BridgeSettings {
  readonly environment: 'sandbox' | 'production';
  /** The URL with the API version, without a trailing slash. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /** The key that verifies the provider's notifications. When undefined, the server only polls. */
  readonly webhookKey: KeyObject | undefined;
}

const environments = ['sandbox', 'production'] as const;

/** Returns the environments of the provider that have settings. Faults never repeat a key. */
export function bridgeSettings(faults: Faults, env: Environment): readonly BridgeSettings[] {
  return environments.flatMap((environment) => {
    const table = providerSettings(environment);
    const isGiven = Object.values(table)
      .flatMap(variableNames)
      .some((name) => env[name] !== undefined);
    if (!isGiven) return [];
    const { name, value } = readerOf(table, 'serve', { env });
    return [
      {
        environment,
        baseUrl: baseUrl(faults, name('url'), value('url')),
        apiKey: apiKey(faults, name('key'), env),
        webhookKey: webhookKey(faults, name('webhookKey'), value('webhookKey')),
      },
    ];
  });
}

function baseUrl(faults: Faults, name: string, text: string | undefined): string {
  const url = text !== undefined && URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url?.search === '' && url.hash === '' && url.username === '' && url.password === '';
  if (url === undefined || !/^https?:$/.test(url.protocol) || !isPlain) {
    faults.push(`${name}: expected the base URL of the provider with its version, e.g. \`https://…/v0\``);
  } else if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    // Without encryption, the network could read the key and personal data.
    faults.push(`${name}: expected an https URL; plain http is accepted on loopback only`);
  }
  return (text ?? '').replace(/(?<!\/)\/+$/, '');
}

function apiKey(faults: Faults, own: string, env: Environment): string {
  const file = `${own}_FILE`;
  const [text, path] = [env[own], env[file]];
  if ((text === undefined) === (path === undefined)) {
    faults.push(`expected one of ${own} and ${file}: the API key of the provider`);
    return '';
  }
  const key = text ?? readText(faults, file, path!)?.trim();
  if (key !== undefined && !/^[\x21-\x7e]{8,512}$/.test(key)) {
    const name = text === undefined ? file : own;
    faults.push(`${name}: expected an API key of 8 to 512 printable ASCII characters without spaces`);
  }
  return key ?? '';
}

function webhookKey(faults: Faults, name: string, path: string | undefined): KeyObject | undefined {
  if (path === undefined) return undefined;
  const pem = readText(faults, name, path);
  if (pem === undefined) return undefined;
  try {
    const key = readPublicKey(pem);
    if (key.asymmetricKeyType === 'rsa') return key;
    faults.push(`${name}: expected an RSA key in \`${path}\``);
  } catch {
    faults.push(`${name}: expected a PEM key or certificate in \`${path}\``);
  }
  return undefined;
}
