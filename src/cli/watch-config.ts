import { unwatchFile, watchFile as watchByTime } from 'node:fs';
import type { Sandbox } from '../compose/sandbox.ts';
import { asStarted } from '../config/client.ts';
import { ConfigError, readSandboxConfig, type SandboxConfig } from '../config/config.ts';
import { type ConfigFile, changedSettings, readConfigFile } from '../config/config-file.ts';
import type { SettingFlags } from '../config/settings.ts';
import { faultText } from './shell/terminal.ts';

/**
 * NOTE: the file is polled, because `fs.watch` misses changes of a file that is mounted into a container, and of a
 * file that an editor replaces.
 */
const INTERVAL_MS = 300;

/** The settings of a changed file, by when they take effect, and the faults of the file. */
interface Reloaded {
  readonly applied: readonly string[];
  readonly needs_reset: readonly string[];
  readonly needs_restart: readonly string[];
  readonly faults: readonly string[];
}

/**
 * Applies the sandbox's configuration file whenever it changes, and prints what was applied. Returns a function that
 * stops watching.
 */
export function watchFile(
  { file: first, json, quiet }: SandboxConfig,
  given: SettingFlags,
  sandbox: Pick<Sandbox, 'applyFile'>,
): () => void {
  if (first === undefined) return () => undefined;
  let work = Promise.resolve();
  let isQueued = false;
  const reload = async (): Promise<void> => {
    isQueued = false;
    const reloaded = await reloadFile(first, given, sandbox.applyFile);
    if (json) console.log(JSON.stringify({ msg: 'config', file: first.path, ...reloaded }));
    else if (!quiet || reloaded.faults.length > 0) console.error(reloadedText(first.name, reloaded));
  };
  watchByTime(first.path, { interval: INTERVAL_MS, persistent: false }, (now, before) => {
    if (now.mtimeMs === before.mtimeMs && now.size === before.size) return;
    // A queued reload reads the file only when it starts, so it also applies the changes until then.
    if (isQueued) return;
    isQueued = true;
    work = work.then(reload).catch((error: Error) => console.error(faultText(error.message)));
  });
  return () => unwatchFile(first.path);
}

/**
 * Applies a changed file. Settings stay as they were at the start, so each is compared with the file as it was then.
 */
async function reloadFile(
  first: ConfigFile,
  given: SettingFlags,
  apply: Sandbox['applyFile'],
): Promise<Reloaded> {
  try {
    const file = readConfigFile(first.path);
    readSandboxConfig(given, 'sandbox', file);
    const { applied, needsReset, faults } = await apply(file);
    return { applied, needs_reset: needsReset, needs_restart: changedSettings(first, file), faults };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { applied: [], needs_reset: [], needs_restart: [], faults: error.faults };
  }
}

function reloadedText(name: string, { applied, needs_reset, needs_restart, faults }: Reloaded): string {
  const part = (title: string, texts: readonly string[]): string[] =>
    texts.length === 0 ? [] : [title, ...texts.map((text) => `  ${text}`)];
  const parts = [
    ...part(`${name} has changed; applied:`, applied),
    ...part(asStarted(`${name}: \`custos reset\` applies`), needs_reset),
    ...part(`${name}: a restart applies`, needs_restart),
    ...part(`${name} has faults; what is not named here is applied:`, faults),
  ];
  return parts.length === 0 ? `${name} has changed, and nothing in it is new.` : parts.join('\n');
}
