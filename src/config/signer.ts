import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import { ceilingsByChain, contracts, type FeeCeilings, type RouterEntry, routers } from './chains.ts';
import * as check from './checks.ts';
import { keySettings } from './key-settings.ts';
import type { Command, Reader, Setting } from './setting.ts';
import { type Settings, variableNames, variablesOf } from './settings.ts';

/** How a signer verifies the tokens of an app's own login. */
interface UserLoginSettings {
  readonly keys: readonly {
    readonly algorithm: 'RS256' | 'ES256';
    readonly kid: string | undefined;
    readonly key: KeyObject;
  }[];
  readonly userIdClaim: string;
  readonly audiences: readonly string[];
}

const NAME = 'CUSTOS_USER_LOGINS_FILE';
const MIN_RSA_BITS = 2048;

/**
 * Reads the logins that a signer verifies: a JSON object by app id, with `verification_key` (PEM) or `keys` (of a
 * JWKS), and `user_id_claim` and `audiences` as in the app's `jwt_auth`. They are not read from the database, because
 * the signer does not trust it.
 */
export function userLogins(
  faults: check.Faults,
  { [NAME]: path }: check.Environment,
): ReadonlyMap<string, UserLoginSettings> {
  const text = path === undefined ? undefined : check.readText(faults, NAME, path);
  const found = new Map<string, UserLoginSettings>();
  if (text === undefined) return found;
  for (const [appId, login] of Object.entries(readObject(faults, text))) {
    try {
      found.set(appId, loginOf(login));
    } catch (error) {
      faults.push(`${NAME}: app \`${appId}\`: ${(error as Error).message}`);
    }
  }
  return found;
}

function readObject(faults: check.Faults, text: string): object {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed;
  } catch {
    // The text is not JSON.
  }
  faults.push(`${NAME}: expected a JSON object by app id`);
  return {};
}

interface Fields {
  readonly verification_key?: unknown;
  readonly keys?: unknown;
  readonly user_id_claim?: unknown;
  readonly audiences?: unknown;
}

function loginOf(value: unknown): UserLoginSettings {
  const {
    verification_key: pem,
    keys,
    user_id_claim: claim = 'sub',
    audiences = [],
  } = (value ?? {}) as Fields;
  if ((pem === undefined) === (keys === undefined)) {
    throw new Error('expected either `verification_key` or `keys`');
  }
  if (typeof claim !== 'string') throw new Error('expected a text for `user_id_claim`');
  if (!Array.isArray(audiences) || !audiences.every((each) => typeof each === 'string')) {
    throw new Error('expected a list of texts for `audiences`');
  }
  if (keys !== undefined && !Array.isArray(keys)) throw new Error('expected a list of JWKs for `keys`');
  const found = keys === undefined ? [keyOf(createPublicKey(String(pem)))] : keys.flatMap(keyOfJwk);
  if (found.length === 0) throw new Error('expected at least one key that signs');
  return { keys: found, userIdClaim: claim, audiences };
}

function keyOfJwk(jwk: JsonWebKey & { readonly use?: unknown; readonly kid?: unknown }) {
  if (jwk.use !== undefined && jwk.use !== 'sig') return [];
  const key = keyOf(createPublicKey({ key: jwk, format: 'jwk' }));
  return [{ ...key, kid: typeof jwk.kid === 'string' ? jwk.kid : undefined }];
}

function keyOf(key: KeyObject): UserLoginSettings['keys'][number] {
  const { modulusLength = 0, namedCurve } = key.asymmetricKeyDetails ?? {};
  const isRsa = key.asymmetricKeyType === 'rsa' && modulusLength >= MIN_RSA_BITS;
  if (!isRsa && namedCurve !== 'prime256v1') {
    throw new Error(`expected RSA keys of at least ${MIN_RSA_BITS} bits, or P-256 keys`);
  }
  return { algorithm: isRsa ? 'RS256' : 'ES256', kid: undefined, key };
}

interface SignerSocket {
  readonly kind: 'socket';
  /** The absolute path of the socket. */
  readonly path: string;
  /** The user who must own the socket and its folder. Default: the user of this process. */
  readonly uid: number | undefined;
}

/** How a server gets its signer: it starts one, or connects to one that listens. */
export type SignerSettings = SignerSocket | OwnSignerSettings;

/** The settings of a signer, for `custos signer` and for a server that starts one. */
export interface OwnSignerSettings {
  readonly kind: 'child';
  /** Returns its environment. It is read when the signer starts, because it may contain secrets, which are not kept. */
  environment(): Record<string, string>;
  readonly files: readonly string[];
  /** The names of secrets in the environment of this process, which cannot remove them from its memory. */
  readonly exposed: readonly string[];
}

/** The key store that opens sealed keys for a command: the master keys themselves, or a signer. */
export type KeyStoreSettings =
  | SignerSocket
  | { readonly kind: 'local'; readonly masterKeys: MasterKeySettings };

type KeyVariable = (typeof keySettings)[keyof typeof keySettings]['variable'];

const ownSettings = Object.values<Setting>(keySettings).filter(({ of }) => of?.includes('signer'));
const secretNames = ownSettings.flatMap(({ secret, variable }) => (secret === true ? variable! : []));
const fileNames = [
  ...ownSettings.flatMap(({ file, variable }) => (file === true ? `${variable}_FILE` : [])),
  keySettings.userLoginsFile.variable,
];
const keyNames = ownSettings.flatMap(variableNames);
/** The variables with certificate authorities for the key management service. */
const trustNames = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE'] as const;

/** Reads how a server reaches its signer. It reads no secrets. The signer reads them and reports their faults. */
export function signerSettings(reader: Reader<Settings, 'serve'>, env: check.Environment): SignerSettings {
  const socket = signerSocket(reader, env);
  if (socket !== undefined) return socket;
  requireOneSource(reader.faults, env);
  return ownSignerSettings(env);
}

export function ownSignerSettings(env: check.Environment): OwnSignerSettings {
  const given = Object.keys(env);
  return {
    kind: 'child',
    environment: () => {
      const entries = [...variablesOf('signer'), ...trustNames].map((name) => [name, env[name]] as const);
      return Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== undefined));
    },
    exposed: secretNames.filter((name) => given.includes(name)),
    files: [...fileNames, ...trustNames].flatMap((name) => (given.includes(name) ? (env[name] ?? []) : [])),
  };
}

export interface SignerConfig extends MasterKeySettings {
  /** The logins whose tokens the signer verifies, by app. */
  readonly logins: ReadonlyMap<string, UserLoginSettings>;
  /** By chain: the fee ceilings that replace the defaults, and the smart contracts whose calls the signer signs. */
  readonly building: {
    readonly feeCeilings: ReadonlyMap<string, FeeCeilings>;
    readonly swapRouters: ReadonlyMap<string, RouterEntry>;
    readonly rewardDistributors: ReadonlyMap<string, string>;
  };
  /** The maximum number of transactions that are signed for one signed request, if it is configured. */
  readonly signaturesPerRequest?: number;
}

export function signerConfig(reader: Reader<Settings, 'signer'>, env: check.Environment): SignerConfig {
  const { faults, name, value } = reader;
  const building = {
    feeCeilings: ceilingsByChain(faults, name('feeCeilings'), { entries: value('feeCeilings') }),
    swapRouters: routers(faults, name('swapRouter'), { entries: value('swapRouter') }),
    rewardDistributors: contracts(faults, name('rewardDistributor'), {
      ...{ entries: value('rewardDistributor'), kind: 'reward distributor' },
    }),
  };
  const signaturesPerRequest = value('signaturesPerRequest');
  const signatures = signaturesPerRequest === undefined ? {} : { signaturesPerRequest };
  const logins = userLogins(faults, env);
  return { ...masterKeys(reader, env), logins, building, ...signatures };
}

/** Reads how a command opens sealed keys. */
export function keyStoreSettings(reader: Reader<Settings, 'keys'>, env: check.Environment): KeyStoreSettings {
  return signerSocket(reader, env) ?? { kind: 'local', masterKeys: masterKeys(reader, env) };
}

function signerSocket<C extends Command>(
  { faults, value }: Reader<Settings, C>,
  env: check.Environment,
): SignerSocket | undefined {
  const path: string | undefined = value('signerSocket');
  const uid: number | undefined = value('signerUid');
  if (path === undefined) {
    if (uid !== undefined) faults.push('CUSTOS_SIGNER_UID: expected CUSTOS_SIGNER_SOCKET with it');
    return undefined;
  }
  if (!path.startsWith('/')) faults.push(`CUSTOS_SIGNER_SOCKET: expected an absolute path, got \`${path}\``);
  const others = Object.keys(env).filter((name) => keyNames.includes(name));
  if (others.length > 0) {
    faults.push(`expected either CUSTOS_SIGNER_SOCKET, whose signer has the keys, or ${others.join(', ')}`);
  }
  return { kind: 'socket', path, uid };
}

// Only the names are checked here. The process that needs the values reads them.
function requireOneSource(faults: check.Faults, env: check.Environment): void {
  const names = Object.keys(env);
  const has = (name: KeyVariable | `${KeyVariable}_FILE`): boolean => names.includes(name);
  const sources = (['CUSTOS_MASTER_KEY', 'CUSTOS_MASTER_KEY_FILE', 'CUSTOS_KMS_URL'] as const).filter(has);
  if (sources.length === 0) {
    faults.push(
      'CUSTOS_MASTER_KEY, CUSTOS_MASTER_KEY_FILE or CUSTOS_KMS_URL is missing: 32 bytes in hex or base64, e.g. from `openssl rand -hex 32`; back it up, without it no wallet can sign',
    );
  } else if (sources.length > 1) {
    faults.push('expected only one of CUSTOS_MASTER_KEY, CUSTOS_MASTER_KEY_FILE and CUSTOS_KMS_URL');
  }
  if (!has('CUSTOS_KMS_URL')) {
    for (const name of ['CUSTOS_KMS_MOUNT', 'CUSTOS_KMS_NAMESPACE'] as const)
      if (has(name)) faults.push(`${name}: expected CUSTOS_KMS_URL with it`);
    return;
  }
  if (!has('CUSTOS_KMS_KEY'))
    faults.push('CUSTOS_KMS_KEY is missing: the name of the wrapping key at CUSTOS_KMS_URL');
  if (!has('CUSTOS_KMS_TOKEN') && !has('CUSTOS_KMS_TOKEN_FILE'))
    faults.push('CUSTOS_KMS_TOKEN is missing: the token for CUSTOS_KMS_URL');
}

/** The master keys of a production server: local keys, the current one first, and an optional transit key. */
export interface MasterKeySettings {
  readonly local: readonly Uint8Array[];
  readonly transit:
    | {
        readonly url: string;
        readonly key: string;
        readonly mount?: string | undefined;
        readonly namespace?: string | undefined;
        readonly token: string;
        readonly tokenFile?: string | undefined;
      }
    | undefined;
}

/**
 * Reads the current master key (32 bytes from the environment or a file, or a key in a key management service) and the
 * previous keys, which are needed until `custos keys rotate` has finished.
 */
function masterKeys<C extends 'signer' | 'keys'>(
  { faults, texts, value }: Reader<Settings, C>,
  env: check.Environment,
): MasterKeySettings {
  requireOneSource(faults, env);
  const current = texts('masterKey').map(({ name, text }) => currentKey(faults, name, text));
  const previous = texts('previousMasterKeys').flatMap(({ name, text }) =>
    check.words(text.replaceAll(',', ' ')).map((key) => keyBytes(faults, name, key)),
  );
  const url: string | undefined = value('kmsUrl');
  return {
    local: [...current, ...previous].filter((key) => key !== undefined),
    transit:
      url === undefined
        ? undefined
        : {
            url,
            key: value('kmsKey') ?? '',
            mount: value('kmsMount'),
            namespace: value('kmsNamespace'),
            token: texts('kmsToken').at(-1)?.text ?? '',
            tokenFile: env[`${keySettings.kmsToken.variable}_FILE`],
          },
  };
}

// A random key of 32 bytes has fewer than 16 distinct values once in about 10^16 keys. Zeros and short patterns
// always have fewer.
const MIN_DISTINCT_BYTES = 16;

/**
 * Reads a key that seals from now on. Such a key must not be weak. Previous keys may be weak, so that they can be
 * replaced by `custos keys rotate`.
 */
function currentKey(faults: check.Faults, name: string, text: string): Uint8Array | undefined {
  const key = keyBytes(faults, name, text);
  if (key === undefined || new Set(key).size >= MIN_DISTINCT_BYTES) return key;
  faults.push(
    `${name}: expected random bytes, e.g. from \`openssl rand -hex 32\`; this key has too few distinct bytes`,
  );
  return undefined;
}

function keyBytes(faults: check.Faults, name: string, text: string): Uint8Array | undefined {
  const encoded = text.trim();
  const isHex = /^[0-9a-fA-F]{64}$/.test(encoded);
  const key = isHex ? Buffer.from(encoded, 'hex') : Buffer.from(encoded, 'base64');
  if (key.length === 32) return new Uint8Array(key);
  faults.push(`${name}: expected 32 bytes in hex or base64, got ${key.length}`);
  return undefined;
}
