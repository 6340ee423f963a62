import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ContractError } from '../document.ts';

/** Something outside of the server that a sandbox simulates, as the comment on its code says. */
export interface SimulatedPart {
  /** The member of a port or of the services by which the domain uses it. */
  readonly name: string;
  /** What it is in a sandbox, in one sentence. */
  readonly sandbox: string;
  /** What `custos serve` has instead. */
  readonly production: string;
  /** What changes it; null for nothing. */
  readonly setting: string | null;
  /** Where the comment is. */
  readonly path: string;
}

/** The `SIMULATED name:` comments of `src/sandbox/simulated`, by name. */
export function readSimulated(root: string): SimulatedPart[] {
  return globSync('src/sandbox/simulated/**/*.ts', { cwd: root })
    .sort()
    .flatMap((path) => simulatedIn(path, readFileSync(join(root, path), 'utf8')))
    .sort((a, b) => a.name.localeCompare(b.name));
}

/** The parts that the comments of one file describe. Throws ContractError for a comment that lacks a line. */
export function simulatedIn(path: string, source: string): SimulatedPart[] {
  return [...source.matchAll(/\/\*\*?[\s\S]*?\*\//g)].flatMap(([comment]) => {
    const text = comment.replace(/^\s*\/?\*+\/?/gm, '').replace(/\*\/$/, '');
    return text
      .split(/\bSIMULATED /)
      .slice(1)
      .map((part) => partOf(path, part));
  });
}

function partOf(path: string, text: string): SimulatedPart {
  const match = /^(\w+): ([\s\S]*?)\sPRODUCTION: ([\s\S]*?)\sSETTING: ([\s\S]*?)(?:\n\s*\n|\s*$)/.exec(text);
  if (match === null) {
    throw new ContractError(
      `${path}: expected \`SIMULATED name: … PRODUCTION: … SETTING: …\`, got \`SIMULATED ${text.trim()}\``,
    );
  }
  const [name = '', sandbox = '', production = '', setting = ''] = match
    .slice(1)
    .map((part) => part.trim().replace(/\s+/g, ' '));
  return { name, sandbox, production, setting: setting === 'none.' ? null : setting, path };
}
