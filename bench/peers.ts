import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = import.meta.dirname;

interface Package {
  readonly version?: string;
  readonly dependencies?: Record<string, string>;
}

function readPackage(path: string): Package {
  return JSON.parse(readFileSync(join(path, 'package.json'), 'utf8')) as Package;
}

/** The programs to compare with that are not installed in the required version. */
export function missingPeers(): string[] {
  return Object.entries(readPackage(folder).dependencies ?? {})
    .filter(([name, version]) => {
      const path = join(folder, 'node_modules', name);
      return !existsSync(path) || readPackage(path).version !== version;
    })
    .map(([name, version]) => `${name} ${version}`);
}

/** Installs them into `bench/node_modules` from the lockfile, without running install scripts. */
export function installPeers(): Promise<void> {
  return runVisibly('npm', ['ci', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund']);
}

/** Builds `dist/` if it is out of date. */
export function buildBundle(): Promise<void> {
  return runVisibly(process.execPath, [join(folder, '..', 'codegen', 'build.ts')]);
}

function runVisibly(program: string, args: readonly string[]): Promise<void> {
  const child = spawn(program, args, { cwd: join(folder, '..'), stdio: ['ignore', 2, 2] });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`\`${program} ${args.join(' ')}\` ended with code ${code}`));
    });
  });
}
