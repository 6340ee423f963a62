import { createPrivateKey, createPublicKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { resolve } from 'node:path';

// Each check records a fault and returns a value of the right type, so that all faults can be reported together.
export type Faults = string[];

export type Environment = Readonly<Record<string, string | undefined>>;

/** Sustained requests per second of one app, and the size of a burst. */
export interface RateLimit {
  perSecond: number;
  burst: number;
}

/** The non-empty items of a comma-separated list, trimmed. */
/** Words of a list, separated by white space. */
export function words(text = ''): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}

export function items(list: string | undefined): string[] {
  return (list ?? '').split(',').flatMap((item) => (item.trim() === '' ? [] : [item.trim()]));
}

export function count(
  faults: Faults,
  name: string,
  text: string,
  { least, most }: { least: number; most: number },
): number {
  const value = Number(text);
  const isCount = /^\d+$/.test(text) && value >= least && value <= most;
  if (!isCount) faults.push(`${name}: expected a whole number from ${least} to ${most}, got \`${text}\``);
  return value;
}

/** A number from 0 to 1. */
export function share(faults: Faults, name: string, text: string): number {
  const value = Number(text);
  const isShare = text !== '' && /^[01]?(\.\d+)?$/.test(text) && value >= 0 && value <= 1;
  if (!isShare) faults.push(`${name}: expected a number from 0 to 1, got \`${text}\``);
  return value;
}

/** A TCP port; 0 selects a free one. */
export function port(faults: Faults, name: string, text: string): number {
  return count(faults, name, text, { least: 0, most: 65_535 });
}

export function oneOf<T extends string>(
  faults: Faults,
  name: string,
  text: string,
  choices: readonly T[],
): T {
  if (!choices.includes(text as T))
    faults.push(`${name}: expected one of ${choices.join(', ')}, got \`${text}\``);
  return text as T;
}

/** The word that clients use in place of `service`. */
export function prefix(faults: Faults, name: string, text: string): string {
  if (!/^[a-z][a-z0-9]{0,31}$/.test(text)) {
    faults.push(`${name}: expected a lower-case word of at most 32 letters and digits, got \`${text}\``);
  }
  return text;
}

/** `100/200`: requests per second and burst. The burst defaults to twice the rate; rate 0 means no limit. */
export function rateLimit(faults: Faults, name: string, text: string): RateLimit | undefined {
  const [perSecondText = '', burstText] = text.split('/');
  const perSecond = count(faults, name, perSecondText, { least: 0, most: 1_000_000 });
  if (perSecond === 0) return undefined;
  const burst =
    burstText === undefined ? perSecond * 2 : count(faults, name, burstText, { least: 1, most: 1_000_000 });
  return { perSecond, burst };
}

/** Base URLs, returned without a trailing slash. */
export function publicUrls(faults: Faults, name: string, urls: readonly string[]): string[] {
  return urls.map((text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    const isBase =
      url !== undefined && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === '';
    if (!isBase) faults.push(`${name}: expected an http(s) URL without a query, got \`${text}\``);
    return text.replace(/(?<!\/)\/+$/, '');
  });
}

/** Comma-separated IP addresses and subnets. */
export function proxies(faults: Faults, name: string, list: string): string[] {
  const entries = items(list);
  for (const entry of entries) {
    const [address = '', bits, ...rest] = entry.split('/');
    const most = isIP(address) === 6 ? 128 : 32;
    const isSubnet = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= most);
    if (isIP(address) === 0 || !isSubnet || rest.length > 0) {
      faults.push(`${name}: expected addresses or subnets such as \`10.0.0.0/8\`, got \`${entry}\``);
    }
  }
  return entries;
}

/** Checks DATABASE_URL. Faults never repeat the value, which may contain a password. */
export function databaseUrl(faults: Faults, text: string | undefined, name = 'DATABASE_URL'): string {
  const example = '`postgresql://user:password@host:5432/custos`';
  if (text === undefined || text === '') {
    faults.push(`${name} is missing: the PostgreSQL database, e.g. ${example}`);
  } else if (!/^postgres(ql)?:\/\/.+\/.+/.test(text) || !URL.canParse(text)) {
    faults.push(`${name}: expected a URL such as ${example}`);
  }
  return text ?? '';
}

/** A replica is a setting that may be left out. */
export function replicaUrl(faults: Faults, text: string | undefined): string | undefined {
  return text === undefined ? undefined : databaseUrl(faults, text, 'CUSTOS_DATABASE_REPLICA_URL');
}

/**
 * Reads the public key from a PEM file with a public key, private key or certificate (RSA or P-256). Returns SPKI PEM.
 */
export function publicKeyFile(faults: Faults, name: string, path: string): string | undefined {
  const pem = readText(faults, name, path);
  if (pem === undefined) return undefined;
  try {
    const key = readPublicKey(pem);
    if (key.asymmetricKeyType === 'rsa' || key.asymmetricKeyDetails?.namedCurve === 'prime256v1') {
      return key.export({ type: 'spki', format: 'pem' }).toString();
    }
    faults.push(`${name}: expected an RSA or P-256 key in \`${path}\`, to verify RS256 or ES256`);
  } catch {
    faults.push(`${name}: expected a PEM key or certificate in \`${path}\``);
  }
  return undefined;
}

/** The base URL of a service whose connections must be encrypted; no trailing slash. */
export function encryptedUrl(faults: Faults, name: string, url: string): string {
  const base = publicUrls(faults, name, [url])[0] ?? url;
  if (URL.canParse(url) && new URL(url).protocol === 'http:' && !isLoopback(new URL(url).hostname)) {
    faults.push(`${name}: expected an https URL; plain http is accepted on loopback only`);
  }
  return base;
}

export function isLoopback(hostname: string): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}

/**
 * Limits of open connections. Behind a proxy all connections come from the proxy's address, so the limit per address is
 * off by default there.
 */
export function connections(
  faults: Faults,
  env: Environment,
  isBehindProxy: boolean,
): { total: number; perAddress: number | undefined } {
  const bounds = { least: 0, most: 1_000_000 };
  const perAddress = count(
    faults,
    'CUSTOS_CONNECTIONS_PER_ADDRESS',
    env.CUSTOS_CONNECTIONS_PER_ADDRESS ?? (isBehindProxy ? '0' : '1000'),
    bounds,
  );
  const total = count(faults, 'CUSTOS_MAX_CONNECTIONS', env.CUSTOS_MAX_CONNECTIONS ?? '10000', {
    ...bounds,
    least: 1,
  });
  return { total, perAddress: perAddress === 0 ? undefined : perAddress };
}

/** The server's certificate and key; undefined if a trusted proxy terminates TLS. */
function tls(faults: Faults, env: Environment, hasProxy: boolean): { cert: string; key: string } | undefined {
  const { CUSTOS_TLS_CERT: certPath, CUSTOS_TLS_KEY: keyPath } = env;
  if (certPath === undefined && keyPath === undefined) {
    if (!hasProxy) {
      faults.push(
        'CUSTOS_TLS_CERT and CUSTOS_TLS_KEY are missing: PEM files of the server; or set CUSTOS_TRUST_PROXY to the addresses of the proxy that terminates TLS',
      );
    }
    return undefined;
  }
  if (certPath === undefined) faults.push('CUSTOS_TLS_CERT is missing: CUSTOS_TLS_KEY requires it');
  if (keyPath === undefined) faults.push('CUSTOS_TLS_KEY is missing: CUSTOS_TLS_CERT requires it');
  const cert = certPath === undefined ? undefined : readText(faults, 'CUSTOS_TLS_CERT', certPath);
  const key = keyPath === undefined ? undefined : readText(faults, 'CUSTOS_TLS_KEY', keyPath);
  if (cert === undefined || key === undefined) return undefined;
  try {
    if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
      faults.push('CUSTOS_TLS_KEY: expected the private key of CUSTOS_TLS_CERT');
    }
  } catch {
    faults.push(
      'CUSTOS_TLS_CERT and CUSTOS_TLS_KEY: expected a PEM certificate and an unencrypted PEM private key',
    );
  }
  return { cert, key };
}

/** The certificate, and a function that reads its files again and throws when they cannot be used. */
export function certificate(faults: Faults, env: Environment, hasProxy: boolean) {
  return {
    tls: tls(faults, env, hasProxy),
    readCertificate: () => {
      const found: string[] = [];
      const read = tls(found, env, true);
      if (found.length > 0) throw new Error(found.join('; '));
      return read;
    },
  };
}

export function drainMs(faults: Faults, env: Environment): number {
  const name = 'CUSTOS_DRAIN_SECONDS';
  return 1000 * count(faults, name, env[name] ?? '5', { least: 0, most: 300 });
}

/** The text of a file; a fault names the file but not what is in it. */
export function readText(faults: Faults, name: string, path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    faults.push(`${name}: cannot read \`${path}\` (${(error as NodeJS.ErrnoException).code})`);
    return undefined;
  }
}

/** @throws for anything but a PEM key or certificate. */
export function readPublicKey(pem: string): KeyObject {
  return pem.includes('BEGIN CERTIFICATE') ? new X509Certificate(pem).publicKey : createPublicKey(pem);
}

export function responseCheck(faults: Faults, env: Environment): 'off' | 'sampled' | 'always' {
  const name = 'CUSTOS_RESPONSE_CHECK';
  return oneOf(faults, name, env[name] ?? 'sampled', ['off', 'sampled', 'always'] as const);
}

/** `checkpointFile` keeps the last signed checkpoint of the audit log, absolute; undefined: only memory does. */
export function restoreSettings(
  faults: Faults,
  env: Environment,
): { readonly afterPromotion: 'hold' | 'trust'; readonly checkpointFile: string | undefined } {
  const name = 'CUSTOS_AFTER_PROMOTION';
  const file = env.CUSTOS_CHECKPOINT_FILE;
  return {
    afterPromotion: oneOf(faults, name, env[name] ?? 'hold', ['hold', 'trust'] as const),
    checkpointFile: file === undefined || file === '' ? undefined : resolve(file),
  };
}

/** A secret that is sent in a header. */
export function secretText(
  faults: string[],
  name: string,
  text: string | undefined,
  leastLength: number,
): string | undefined {
  const isValid = text === undefined || (/^[\x21-\x7e]{1,256}$/.test(text) && text.length >= leastLength);
  if (!isValid)
    faults.push(`${name}: expected ${leastLength} to 256 printable ASCII characters without spaces`);
  return text;
}

/** How a clock starts: `now`, `frozen`, or frozen at a time, which is returned in Unix ms. */
export function clockStart(faults: string[], name: string, text: string): 'now' | 'frozen' | number {
  if (text === 'now' || text === 'frozen') return text;
  const timeMs = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isFinite(timeMs) && timeMs >= 0) return timeMs;
  faults.push(
    `${name}: expected \`now\`, \`frozen\` or a time such as 2026-07-01T12:00:00Z, got \`${text}\``,
  );
  return 'now';
}

export const shareSettings = ['CUSTOS_AUTOMATION_FEE_SHARE', 'CUSTOS_LOG_REQUESTS'] as const;

/** The share of what an automation brings that its gas may cost, and that of the requests that are logged. */
export function shares(
  faults: string[],
  env: Readonly<Record<string, string | undefined>>,
): { readonly automationFeeShare: number; readonly loggedShare: number } {
  const { CUSTOS_AUTOMATION_FEE_SHARE: fees = '0.5', CUSTOS_LOG_REQUESTS: requests = '1' } = env;
  return {
    automationFeeShare: share(faults, 'CUSTOS_AUTOMATION_FEE_SHARE', fees),
    loggedShare: share(faults, 'CUSTOS_LOG_REQUESTS', requests),
  };
}
