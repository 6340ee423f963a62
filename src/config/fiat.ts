import type { KeyObject } from 'node:crypto';
import { type Environment, isLoopback, readPublicKey, readText } from './checks.ts';

/** One environment of the fiat provider `bridge`. */
export interface BridgeSettings {
  readonly environment: 'sandbox' | 'production';
  /** With the version, without a trailing slash. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Verifies the provider's notifications; undefined: the server only polls. */
  readonly webhookKey: KeyObject | undefined;
}

const environments = ['sandbox', 'production'] as const;

/** The names of all settings of fiat providers. */
export const fiatNames: readonly string[] = environments.flatMap((environment) =>
  Object.values(namesOf(environment)),
);

function namesOf(environment: BridgeSettings['environment']) {
  const start = `CUSTOS_BRIDGE_${environment.toUpperCase()}`;
  return {
    url: `${start}_URL`,
    key: `${start}_KEY`,
    keyFile: `${start}_KEY_FILE`,
    webhookKey: `${start}_WEBHOOK_KEY`,
  };
}

/** The environments of the provider that have settings. Faults never repeat a key. */
export function bridgeSettings(faults: string[], env: Environment): readonly BridgeSettings[] {
  return environments.flatMap((environment) => {
    const names = namesOf(environment);
    const given = Object.values(names).filter((name) => env[name] !== undefined);
    if (given.length === 0) return [];
    return [
      {
        environment,
        baseUrl: baseUrl(faults, names.url, env[names.url]),
        apiKey: apiKey(faults, names, env),
        webhookKey: webhookKey(faults, names.webhookKey, env[names.webhookKey]),
      },
    ];
  });
}

function baseUrl(faults: string[], name: string, text: string | undefined): string {
  const url = text !== undefined && URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url?.search === '' && url.hash === '' && url.username === '' && url.password === '';
  if (url === undefined || !/^https?:$/.test(url.protocol) || !isPlain) {
    faults.push(`${name}: expected the base URL of the provider with its version, e.g. \`https://…/v0\``);
  } else if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    // The key and personal data would cross the network in clear.
    faults.push(`${name}: expected an https URL; plain http is accepted on loopback only`);
  }
  return (text ?? '').replace(/(?<!\/)\/+$/, '');
}

function apiKey(faults: string[], names: ReturnType<typeof namesOf>, env: Environment): string {
  const [text, path] = [env[names.key], env[names.keyFile]];
  if ((text === undefined) === (path === undefined)) {
    faults.push(`expected one of ${names.key} and ${names.keyFile}: the API key of the provider`);
    return '';
  }
  const key = text ?? readText(faults, names.keyFile, path!)?.trim();
  if (key === undefined) return '';
  if (!/^[\x21-\x7e]{8,512}$/.test(key)) {
    const name = text === undefined ? names.keyFile : names.key;
    faults.push(`${name}: expected an API key of 8 to 512 printable ASCII characters without spaces`);
  }
  return key;
}

function webhookKey(faults: string[], name: string, path: string | undefined): KeyObject | undefined {
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
