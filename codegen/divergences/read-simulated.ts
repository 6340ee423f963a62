import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ContractError } from '../document.ts';

/** A part outside of the server that a sandbox simulates, as the comment on its code describes it. */
export interface SimulatedPart {
  /** The member of a port or of the services through which the domain uses the part. */
  readonly name: string;
  /** A sentence about the behavior of the sandbox. */
  readonly sandbox: string;
  /** A sentence about the behavior of `custos serve`. */
  readonly production: string;
  /** The setting that replaces the simulated part. Null when no setting does. */
  readonly setting: string | null;
  /** The path of the comment. */
  readonly path: string;
}

/** Reads the `SIMULATED name:` comments of `src/sandbox/simulated`, by name. */
export function readSimulated(root: string): SimulatedPart[] {
  return globSync('src/sandbox/simulated/**/*.ts', { cwd: root })
    .sort()
    .flatMap((path) => simulatedIn(path, readFileSync(join(root, path), 'utf8')))
    .sort((a, b) => a.name.localeCompare(b.name));
}

/**
 * Reads the parts that the comments of one file describe.
 *
 * @throws ContractError for an incomplete comment.
 */
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
