import { join } from 'node:path';
import type { Environment } from './checks.ts';
import { clientSettings } from './settings.ts';

/** The values that `custos env` and `custos exec` set for clients of a sandbox. */
export type ClientSettings = { readonly [K in keyof typeof clientSettings]?: string };

/** Reads the sandbox that the environment names. Unset and empty variables are omitted. */
export function readClientSettings(env: Environment = process.env): ClientSettings {
  const entries = Object.entries(clientSettings).map(([key, { variable }]) => [key, env[variable]]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined && value !== ''));
}

/**
 * Returns the environment for a program that uses a sandbox: the environment of this process and the variables of the
 * sandbox.
 */
export function environmentFor(
  settings: Readonly<Record<string, string>>,
  env: Environment = process.env,
): Record<string, string | undefined> {
  return { ...env, ...settings };
}

/**
 * Returns the words with which the user starts this program: `npx custos` if it is installed in a project, where no
 * shell finds it by name alone.
 */
export function programName(script = process.argv[1] ?? ''): string {
  return script.endsWith(join('node_modules', '.bin', 'custos')) ? 'npx custos' : 'custos';
}

/**
 * Replaces `custos` at the start of each command, in backticks or after a prompt, with the words with which the user
 * starts this program.
 */
export function asStarted(text: string): string {
  const name = programName();
  return text.replaceAll('`custos ', `\`${name} `).replaceAll('$ custos ', `$ ${name} `);
}

/**
 * The variable by which the reporter of `custos/testing` tells sandboxes in other processes in which folder it collects
 * coverage.
 */
const COVERAGE_FOLDER = 'CUSTOS_COVERAGE_FOLDER';

export function setCoverageFolder(folder: string, env: Environment = process.env): void {
  (env as Record<string, string>)[COVERAGE_FOLDER] = folder;
}

export function coverageFolder(env: Environment = process.env): string | undefined {
  return env[COVERAGE_FOLDER];
}

/** Returns whether this process runs tests of vitest. */
export function isInVitest(env: Environment = process.env): boolean {
  return env.VITEST !== undefined;
}

/** Returns whether a browser can be opened. macOS and Windows always have a desktop. */
export function hasDesktop(platform: NodeJS.Platform, env: Environment = process.env): boolean {
  if (platform === 'darwin' || platform === 'win32') return true;
  return [env.DISPLAY, env.WAYLAND_DISPLAY].some((name) => name !== undefined && name !== '');
}

/** Returns the variables that send requests of Node.js to `host` through a proxy. */
export function proxyVariables(host: string, env: Environment = process.env): string[] {
  const set = (name: string): boolean => (env[name] ?? '') !== '';
  const exempt = (env.NO_PROXY ?? env.no_proxy ?? '').split(/[\s,]+/);
  if (exempt.includes('*') || exempt.includes(host)) return [];
  return ['HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy'].filter(set);
}
