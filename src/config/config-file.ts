import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, isAbsolute, relative, resolve, sep } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { ConfigError } from './config.ts';
import type { Setting } from './setting.ts';
import { type SettingFlags, settings } from './settings.ts';

export const CONFIG_FILE = 'custos.config.json';

/** The sections with named entries, each with the operation whose body an entry is. */
export const namedSections = {
  users: 'createUser',
  keyQuorums: 'createKeyQuorum',
  policies: 'createPolicy',
  wallets: 'createWallet',
  webhookEndpoints: 'createWebhookEndpoint',
} as const;

/** The sections that are lists, each with the operation of the control plane whose body an entry is. */
export const listSections = { balances: 'fundAddress', faults: 'addFault' } as const;

export type NamedSection = keyof typeof namedSections;
type ListSection = keyof typeof listSections;

type Body = Readonly<Record<string, unknown>>;

/** The resources that a file declares, each as the body of the operation that creates it. */
export type World = { readonly [S in NamedSection]: Readonly<Record<string, Body>> } & {
  readonly [S in ListSection]: readonly Body[];
};

export interface ConfigFile {
  /** The absolute path. */
  readonly path: string;
  /** The name of the file in messages. */
  readonly name: string;
  /** The settings, as if they had been given as options. */
  readonly settings: SettingFlags;
  readonly world: World;
}

/** The settings that a file may have: those of `custos sandbox`, except where it prints. */
export const fileSettings: Readonly<Record<string, Setting>> = Object.fromEntries(
  Object.entries<Setting>(settings).filter(
    ([key, { flag, on = [] }]) =>
      flag !== undefined && on.includes('sandbox') && !['config', 'readyFile', 'quiet', 'json'].includes(key),
  ),
);

/** The settings that name a file or a folder. In a file, they are relative to its folder. */
const paths = new Set(['data', 'jwtKey', 'load']);

/**
 * CHOICE: settings of one process, which `custos exec` and the testing library do not take from a file. Several such
 * processes may run beside a sandbox of the same folder.
 */
const ofOneProcess = ['port', 'rpcPort', 'adminPort', 'host', 'publicUrl', 'data', 'plainHttp'] as const;

/** Returns the path of the file that a command reads: `given`, or the one in the folder. `off` means none. */
export function findConfigFile(given: string | undefined, folder = process.cwd()): string | undefined {
  if (given === 'off') return undefined;
  if (given !== undefined) return resolve(folder, given);
  const path = resolve(folder, CONFIG_FILE);
  return existsSync(path) ? path : undefined;
}

/**
 * Reads and checks a file.
 * @throws ConfigError that lists every fault of the structure.
 */
export function readConfigFile(path: string): ConfigFile {
  const name = basename(path);
  const faults: string[] = [];
  const content = contentOf(path, name);
  const flags: Record<string, unknown> = {};
  const world: Record<string, unknown> = { ...emptyWorld };
  for (const [key, value] of Object.entries(content)) {
    const place = `${name}: /${key}`;
    if (key === '$schema') continue;
    else if (Object.hasOwn(fileSettings, key))
      flags[key] = flagOf(key, value, { faults, place, folder: dirname(path) });
    else if (Object.hasOwn(namedSections, key)) world[key] = namedOf(value, { faults, place });
    else if (Object.hasOwn(listSections, key))
      world[key] = listOf(value, { faults, place }).map((body, index) =>
        withFile(body, { faults, place: `${place}/${index}/body`, folder: dirname(path) }),
      );
    else faults.push(`${place}: expected ${expectedKey(key)}`);
  }
  if (faults.length > 0) throw invalid(name, faults);
  return { path, name, settings: flags as SettingFlags, world: world as World };
}

/**
 * Returns the file without the settings of one process, for a process that must not compete with the folder's sandbox.
 */
export function withoutPlaces(file: ConfigFile): ConfigFile {
  const kept = Object.entries(file.settings).filter(
    ([key]) => !(ofOneProcess as readonly string[]).includes(key),
  );
  return { ...file, settings: Object.fromEntries(kept) };
}

/** Returns the settings that differ between two versions of a file, with both values, as text. */
export function changedSettings(before: ConfigFile, after: ConfigFile): string[] {
  const [old, now] = [before.settings, after.settings] as readonly Readonly<Record<string, unknown>>[];
  const shown = (key: string, value: unknown): string =>
    value === undefined ? 'none' : fileSettings[key]!.secret === true ? '…' : String(value);
  return [...new Set([...Object.keys(old!), ...Object.keys(now!)])]
    .filter((key) => !isDeepStrictEqual(old![key], now![key]))
    .map((key) => `/${key}: ${shown(key, old![key])} -> ${shown(key, now![key])}`);
}

const emptyWorld: World = {
  ...{ users: {}, keyQuorums: {}, policies: {}, wallets: {}, webhookEndpoints: {} },
  ...{ balances: [], faults: [] },
};

function contentOf(path: string, name: string): Readonly<Record<string, unknown>> {
  let text: string;
  try {
    text = readText(path);
  } catch (error) {
    throw invalid(name, [`${path}: ${(error as Error).message}`]);
  }
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw invalid(name, [`${name}: expected JSON: ${(error as Error).message}`]);
  }
  if (isObject(content)) return content;
  throw invalid(name, [`${name}: expected an object, got ${kindOf(content)}`]);
}

/** The maximum size of a configuration file, and of a file that it names. */
const MAX_MEBIBYTES = 16;

/**
 * Reads a file. Reading a pipe or a device may never end, so these are refused.
 *
 * @throws Error whose message says what was expected.
 */
function readText(path: string): string {
  try {
    const stat = statSync(path);
    if (stat.isFile() && stat.size <= MAX_MEBIBYTES * 2 ** 20) return readFileSync(path, 'utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new Error(`expected a file that can be read, got ${code}`, { cause });
  }
  throw new Error(`expected a file of at most ${MAX_MEBIBYTES} MiB`);
}

interface Place {
  readonly faults: string[];
  readonly place: string;
}

function flagOf(key: string, value: unknown, { faults, place, folder }: Place & { folder: string }) {
  const { flag = '', list } = fileSettings[key]!;
  const fault = (expected: string): undefined =>
    void faults.push(`${place}: expected ${expected}, got ${kindOf(value)}`);
  if (!flag.includes('<')) return typeof value === 'boolean' ? value : fault('true or false');
  const isText = (each: unknown): each is string | number => ['string', 'number'].includes(typeof each);
  if (list !== undefined) {
    return Array.isArray(value) && value.every(isText) ? value.map(String) : fault('a list of texts');
  }
  if (!isText(value)) return fault('a text or a number');
  const text = String(value);
  if (!paths.has(key)) return text;
  const path = resolve(folder, text);
  // A snapshot may also be given by its name.
  return key === 'load' && !existsSync(path) ? text : path;
}

function namedOf(value: unknown, { faults, place }: Place): Readonly<Record<string, unknown>> {
  if (!isObject(value)) {
    faults.push(`${place}: expected an object whose members are the names, got ${kindOf(value)}`);
    return {};
  }
  for (const [name, body] of Object.entries(value)) {
    if (!/^[A-Za-z0-9_-]{1,50}$/.test(name))
      faults.push(`${place}/${name}: expected a name of at most 50 letters, digits, \`-\` and \`_\``);
    if (!isObject(body)) faults.push(`${place}/${name}: expected an object, got ${kindOf(body)}`);
  }
  return value;
}

function listOf(value: unknown, { faults, place }: Place): readonly unknown[] {
  if (!Array.isArray(value)) {
    faults.push(`${place}: expected a list, got ${kindOf(value)}`);
    return [];
  }
  for (const [index, body] of value.entries()) {
    if (!isObject(body)) faults.push(`${place}/${index}: expected an object, got ${kindOf(body)}`);
  }
  return value;
}

/**
 * Replaces a body such as `{"$file": "denied.json"}` by the content of the file: JSON, or any other text.
 *
 * CHOICE: only files below the folder of the configuration file. The sandbox sends the content to its clients, so a
 * repository of another person must not select private files.
 */
function withFile(entry: unknown, { faults, place, folder }: Place & { folder: string }): unknown {
  if (!isObject(entry) || !isObject(entry.body) || typeof entry.body.$file !== 'string') return entry;
  const path = resolve(folder, entry.body.$file);
  let text: string;
  try {
    if (!isBelow(folder, path)) throw new Error('expected a file below the folder of the configuration file');
    text = readText(path);
  } catch (error) {
    faults.push(`${place}/$file: ${(error as Error).message}, got \`${entry.body.$file}\``);
    return entry;
  }
  try {
    return { ...entry, body: JSON.parse(text) as unknown };
  } catch {
    return { ...entry, body: text };
  }
}

/** Returns whether a path is inside a folder after links are resolved. */
function isBelow(folder: string, path: string): boolean {
  const inFolder = relative(realpathSync(folder), existsSync(path) ? realpathSync(path) : path);
  return !isAbsolute(inFolder) && inFolder.split(sep)[0] !== '..';
}

function expectedKey(key: string): string {
  const all = [...Object.keys(fileSettings), ...Object.keys(namedSections), ...Object.keys(listSections)];
  const plain = (text: string): string => text.replaceAll(/[-_]/g, '').toLowerCase();
  const meant = all.find((each) => plain(each) === plain(key));
  return meant === undefined ? `one of ${all.join(', ')}` : `\`${meant}\`, got \`${key}\``;
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `\`${JSON.stringify(value)}\``;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(name: string, faults: readonly string[]): ConfigError {
  return new ConfigError(`${name} cannot be used:`, faults);
}
