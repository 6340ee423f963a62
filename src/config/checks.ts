import { createPrivateKey, createPublicKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { resolve } from 'node:path';

// The faults of the settings. Each check adds its fault and returns a value of the right type, so that all faults can
// be reported together.
export type Faults = string[];

export type Environment = Readonly<Record<string, string | undefined>>;

/** Sustained requests per second of one app, and the size of a burst. */
export interface RateLimit {
  perSecond: number;
  burst: number;
}

/** Returns the words of a list, which white space separates. */
export function words(text = ''): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}

/** Returns the non-empty items of a comma-separated list, trimmed. */
export function items(list: string | undefined): string[] {
  return (list ?? '').split(',').flatMap((item) => (item.trim() === '' ? [] : [item.trim()]));
}

/** Reads one setting from its text. */
type Read<T> = (faults: Faults, name: string, text: string) => T;

export const whole =
  (least: number, most: number): Read<number> =>
  (faults, name, text) => {
    const value = Number(text);
    const isWhole = /^\d+$/.test(text) && value >= least && value <= most;
    if (!isWhole) faults.push(`${name}: expected a whole number from ${least} to ${most}, got \`${text}\``);
    return value;
  };

/** Reads a number from 0 to 1. */
export function share(faults: Faults, name: string, text: string): number {
  const value = Number(text);
  const isShare = text !== '' && /^[01]?(\.\d+)?$/.test(text) && value >= 0 && value <= 1;
  if (!isShare) faults.push(`${name}: expected a number from 0 to 1, got \`${text}\``);
  return value;
}

/** Reads a TCP port. 0 selects a free port. */
export const port = whole(0, 65_535);

export const oneOf =
  <T extends string>(...choices: readonly T[]): Read<T> =>
  (faults, name, text) => {
    if (!choices.includes(text as T))
      faults.push(`${name}: expected one of ${choices.join(', ')}, got \`${text}\``);
    return text as T;
  };

/** Reads the brand that clients use in place of `service`. */
export function prefix(faults: Faults, name: string, text: string): string {
  if (!/^[a-z][a-z0-9]{0,31}$/.test(text)) {
    faults.push(`${name}: expected a lower-case word of at most 32 letters and digits, got \`${text}\``);
  }
  return text;
}

/**
 * Reads a limit such as `100/200`: requests per second and burst. The burst defaults to twice the rate. Returns
 * undefined for the rate 0, which means no limit.
 */
export function rateLimit(faults: Faults, name: string, text: string): RateLimit | undefined {
  const [perSecondText = '', burstText] = text.split('/');
  const perSecond = whole(0, 1_000_000)(faults, name, perSecondText);
  if (perSecond === 0) return undefined;
  const burst = burstText === undefined ? perSecond * 2 : whole(1, 1_000_000)(faults, name, burstText);
  return { perSecond, burst };
}

/** Reads base URLs and returns them without a trailing slash. */
export function publicUrls(faults: Faults, name: string, urls: readonly string[]): readonly string[] {
  return urls.map((text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    const isBase =
      url !== undefined && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === '';
    if (!isBase) faults.push(`${name}: expected an http(s) URL without a query, got \`${text}\``);
    return text.replace(/(?<!\/)\/+$/, '');
  });
}

/** Reads comma-separated IP addresses and subnets. */
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
export function databaseUrl(faults: Faults, name: string, text: string | undefined): string {
  const example = '`postgresql://user:password@host:5432/custos`';
  if (text === undefined || text === '') {
    faults.push(`${name} is missing: the PostgreSQL database, e.g. ${example}`);
  } else if (!/^postgres(ql)?:\/\/.+\/.+/.test(text) || !URL.canParse(text)) {
    faults.push(`${name}: expected a URL such as ${example}`);
  }
  return text ?? '';
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

/** Reads the base URL of a service whose connections must be encrypted. Returns it without a trailing slash. */
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

interface CertificatePaths {
  readonly certPath: string | undefined;
  readonly keyPath: string | undefined;
}

/** Reads the server's certificate and key. Returns undefined if a trusted proxy terminates TLS. */
function tls(
  faults: Faults,
  { certPath, keyPath }: CertificatePaths,
  hasProxy: boolean,
): { cert: string; key: string } | undefined {
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

/**
 * Reads the certificate, and returns a function that reads its files again. The function throws when they cannot be
 * used.
 */
export function certificate(faults: Faults, paths: CertificatePaths, hasProxy: boolean) {
  return {
    tls: tls(faults, paths, hasProxy),
    readCertificate: () => {
      const found: string[] = [];
      const read = tls(found, paths, true);
      if (found.length > 0) throw new Error(found.join('; '));
      return read;
    },
  };
}

/** Reads a file. A fault names the file but not its content. */
export function readText(faults: Faults, name: string, path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    faults.push(`${name}: cannot read \`${path}\` (${(error as NodeJS.ErrnoException).code})`);
    return undefined;
  }
}

/**
 * Reads a key or certificate in PEM.
 * @throws Error for anything else.
 */
export function readPublicKey(pem: string): KeyObject {
  return pem.includes('BEGIN CERTIFICATE') ? new X509Certificate(pem).publicKey : createPublicKey(pem);
}

export function absolutePath(_faults: Faults, _name: string, path: string): string {
  return resolve(path);
}

export function optionalPath(_faults: Faults, _name: string, path: string): string | undefined {
  return path === '' ? undefined : resolve(path);
}

/** Reads a secret that is sent in a header. */
export const secretText =
  (leastLength: number): Read<string> =>
  (faults, name, text) => {
    if (!/^[\x21-\x7e]{1,256}$/.test(text) || text.length < leastLength)
      faults.push(`${name}: expected ${leastLength} to 256 printable ASCII characters without spaces`);
    return text;
  };

/** Reads how a clock starts: `now`, `frozen`, or frozen at a time, which is returned in Unix ms. */
export function clockStart(faults: Faults, name: string, text: string): 'now' | 'frozen' | number {
  if (text === 'now' || text === 'frozen') return text;
  const timeMs = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isFinite(timeMs) && timeMs >= 0) return timeMs;
  faults.push(
    `${name}: expected \`now\`, \`frozen\` or a time such as 2026-07-01T12:00:00Z, got \`${text}\``,
  );
  return 'now';
}
