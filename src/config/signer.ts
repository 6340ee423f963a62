import { ceilingsByChain, contracts, type FeeCeilings, type RouterEntry, routers } from './chains.ts';
import * as check from './checks.ts';
import { type UserLoginSettings, userLogins } from './user-logins.ts';

/** A signer that listens on a socket. */
interface SignerSocket {
  readonly kind: 'socket';
  /** Absolute. */
  readonly path: string;
  /** The user who must own the socket and its folder; undefined: the user of this process. */
  readonly uid: number | undefined;
}

/** The signer of a server: one that it starts, or one that listens. */
export type SignerSettings = SignerSocket | OwnSignerSettings;

/** What a signer is given, by a server that starts it or by `custos signer`. */
export interface OwnSignerSettings {
  readonly kind: 'child';
  /** Its environment. Read when it is started: it may contain secrets, which are not kept. */
  environment(): Record<string, string>;
  /** The files that it reads. */
  readonly files: readonly string[];
  /** The names of secrets that the environment of this process contains, which cannot forget them. */
  readonly exposed: readonly string[];
}

/** What opens sealed keys for a command: the master keys themselves, or a signer. */
export type VaultSettings = SignerSocket | { readonly kind: 'local'; readonly masterKeys: MasterKeySettings };

/** Secrets. */
const secretNames = ['CUSTOS_MASTER_KEY', 'CUSTOS_PREVIOUS_MASTER_KEYS', 'CUSTOS_KMS_TOKEN'] as const;
const fileNames = [
  'CUSTOS_MASTER_KEY_FILE',
  'CUSTOS_PREVIOUS_MASTER_KEYS_FILE',
  'CUSTOS_KMS_TOKEN_FILE',
  'CUSTOS_USER_LOGINS_FILE',
] as const;
const keyNames = [
  ...secretNames,
  ...fileNames,
  'CUSTOS_KMS_URL',
  'CUSTOS_KMS_KEY',
  'CUSTOS_KMS_MOUNT',
  'CUSTOS_KMS_NAMESPACE',
  'CUSTOS_SIGNATURES_PER_REQUEST',
] as const;
/** What limits and names what a server builds. Of the server too, which has them also with a signer that listens. */
const [CEILINGS, ROUTERS, DISTRIBUTORS] = [
  'CUSTOS_FEE_CEILINGS',
  'CUSTOS_SWAP_ROUTERS',
  'CUSTOS_REWARD_DISTRIBUTORS',
] as const;
/** Certificate authorities of the key management service. */
const trustNames = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE'] as const;

/** The settings of this file. */
export const signerNames: readonly string[] = [...keyNames, 'CUSTOS_SIGNER_SOCKET', 'CUSTOS_SIGNER_UID'];

/** Reads how a server reaches its signer. Looks at no secret: those are read by the signer, which reports their faults. */
export function signerSettings(faults: check.Faults, env: check.Environment): SignerSettings {
  const socket = signerSocket(faults, env);
  if (socket !== undefined) return socket;
  requireOneSource(faults, env);
  return ownSignerSettings(env);
}

export function ownSignerSettings(env: check.Environment): OwnSignerSettings {
  const given = Object.keys(env);
  return {
    kind: 'child',
    environment: () => picked(env),
    exposed: secretNames.filter((name) => given.includes(name)),
    files: [...fileNames, ...trustNames].flatMap((name) => (given.includes(name) ? (env[name] ?? []) : [])),
  };
}

function picked(env: check.Environment): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of [...keyNames, ...trustNames, CEILINGS, ROUTERS, DISTRIBUTORS]) {
    const value = env[name];
    if (value !== undefined) found[name] = value;
  }
  return found;
}

/** The settings of a signer. */
export interface SignerConfig extends MasterKeySettings {
  /** By app: the logins whose tokens it verifies. */
  readonly logins: ReadonlyMap<string, UserLoginSettings>;
  /** By chain: what replaces the default ceilings of fees, and the contracts that it signs calls of. */
  readonly building: {
    readonly feeCeilings: ReadonlyMap<string, FeeCeilings>;
    readonly swapRouters: ReadonlyMap<string, RouterEntry>;
    readonly rewardDistributors: ReadonlyMap<string, string>;
  };
  /** For how many transactions each signed request may be used, if it is configured. */
  readonly signaturesPerRequest?: number;
}

export function signerConfig(faults: check.Faults, env: check.Environment): SignerConfig {
  const entriesOf = (name: string) => ({ entries: check.words(env[name]) });
  const building = {
    feeCeilings: ceilingsByChain(faults, CEILINGS, entriesOf(CEILINGS)),
    swapRouters: routers(faults, ROUTERS, entriesOf(ROUTERS)),
    rewardDistributors: contracts(faults, DISTRIBUTORS, {
      ...entriesOf(DISTRIBUTORS),
      kind: 'reward distributor',
    }),
  };
  const { CUSTOS_SIGNATURES_PER_REQUEST: text } = env;
  const bounds = { least: 1, most: 1_000 };
  const signatures =
    text === undefined
      ? {}
      : { signaturesPerRequest: check.count(faults, 'CUSTOS_SIGNATURES_PER_REQUEST', text, bounds) };
  const logins = userLogins(faults, env);
  return { ...masterKeys(faults, env), logins, building, ...signatures };
}

/** Reads what opens sealed keys for a command. */
export function vaultSettings(faults: check.Faults, env: check.Environment): VaultSettings {
  return signerSocket(faults, env) ?? { kind: 'local', masterKeys: masterKeys(faults, env) };
}

function signerSocket(faults: check.Faults, env: check.Environment): SignerSocket | undefined {
  const { CUSTOS_SIGNER_SOCKET: path, CUSTOS_SIGNER_UID: uid } = env;
  if (path === undefined) {
    if (uid !== undefined) faults.push('CUSTOS_SIGNER_UID: expected CUSTOS_SIGNER_SOCKET with it');
    return undefined;
  }
  if (!path.startsWith('/')) faults.push(`CUSTOS_SIGNER_SOCKET: expected an absolute path, got \`${path}\``);
  const others = Object.keys(env).filter((name) => (keyNames as readonly string[]).includes(name));
  if (others.length > 0) {
    faults.push(`expected either CUSTOS_SIGNER_SOCKET, whose signer has the keys, or ${others.join(', ')}`);
  }
  const bounds = { least: 0, most: 2 ** 32 - 2 };
  return {
    kind: 'socket',
    path,
    uid: uid === undefined ? undefined : check.count(faults, 'CUSTOS_SIGNER_UID', uid, bounds),
  };
}

// Names only: the values are read by the process that needs them.
function requireOneSource(faults: check.Faults, env: check.Environment): void {
  const names = Object.keys(env);
  const has = (name: (typeof keyNames)[number]): boolean => names.includes(name);
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
function masterKeys(faults: check.Faults, env: check.Environment): MasterKeySettings {
  requireOneSource(faults, env);
  const { CUSTOS_MASTER_KEY: text, CUSTOS_MASTER_KEY_FILE: path, CUSTOS_KMS_URL: kmsUrl } = env;
  const local: (Uint8Array | undefined)[] = [];
  if (text !== undefined) local.push(currentKey(faults, 'CUSTOS_MASTER_KEY', text));
  if (path !== undefined) {
    const encoded = check.readText(faults, 'CUSTOS_MASTER_KEY_FILE', path);
    if (encoded !== undefined) local.push(currentKey(faults, 'CUSTOS_MASTER_KEY_FILE', encoded));
  }
  local.push(...previousKeys(faults, env));
  return {
    local: local.filter((key) => key !== undefined),
    transit: kmsUrl === undefined ? undefined : transitKey(faults, env, kmsUrl),
  };
}

function previousKeys(faults: check.Faults, env: check.Environment): (Uint8Array | undefined)[] {
  const { CUSTOS_PREVIOUS_MASTER_KEYS: list, CUSTOS_PREVIOUS_MASTER_KEYS_FILE: path } = env;
  const fromList = check.items(list).map((item) => keyBytes(faults, 'CUSTOS_PREVIOUS_MASTER_KEYS', item));
  if (path === undefined) return fromList;
  const name = 'CUSTOS_PREVIOUS_MASTER_KEYS_FILE';
  const keys = (check.readText(faults, name, path) ?? '').split(/[\s,]+/).filter((item) => item !== '');
  return [...fromList, ...keys.map((item) => keyBytes(faults, name, item))];
}

// 32 random bytes have fewer than 16 distinct values once in about 10^16 keys; zeros and short patterns always do.
const MIN_DISTINCT_BYTES = 16;

/** A key that seals from now on. Previous keys may be weak, so that they can be rotated away. */
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

function transitKey(
  faults: check.Faults,
  env: check.Environment,
  url: string,
): NonNullable<MasterKeySettings['transit']> {
  const { CUSTOS_KMS_KEY: key, CUSTOS_KMS_TOKEN_FILE: path } = env;
  const token =
    path === undefined
      ? env.CUSTOS_KMS_TOKEN
      : (check.readText(faults, 'CUSTOS_KMS_TOKEN_FILE', path) ?? '').trim();
  const address = check.encryptedUrl(faults, 'CUSTOS_KMS_URL', url);
  return {
    url: address,
    key: key ?? '',
    ...transitPlace(faults, env),
    token: token ?? '',
    ...(path === undefined ? {} : { tokenFile: path }),
  };
}

/** Where the transit engine is. Both are paths, whose slashes at the ends do not count. */
function transitPlace(
  faults: check.Faults,
  env: check.Environment,
): { readonly mount?: string; readonly namespace?: string } {
  const path = (name: string, text: string): string => {
    const trimmed = text.replace(/^\/|\/$/g, '');
    const isPath = /^[\x21-\x7e]{1,256}$/.test(trimmed);
    const isWhole = trimmed.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
    if (!isPath || !isWhole)
      faults.push(`${name}: expected a path such as \`team/transit\`, got \`${text}\``);
    return trimmed;
  };
  const { CUSTOS_KMS_MOUNT: mount, CUSTOS_KMS_NAMESPACE: namespace } = env;
  return {
    ...(mount === undefined ? {} : { mount: path('CUSTOS_KMS_MOUNT', mount) }),
    ...(namespace === undefined ? {} : { namespace: path('CUSTOS_KMS_NAMESPACE', namespace) }),
  };
}
