import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readSimulated } from '../../codegen/divergences/read-simulated.ts';
import { root } from './source-files.ts';

/** Ports that the simulated world only uses. */
const used = ['clock', 'machine', 'ids', 'log'];

test('every service that the sandbox simulates says so, where it is simulated', () => {
  const services = readFileSync(join(root, 'src/ports/operation-context.ts'), 'utf8');
  const types = new Set(
    globSync('src/sandbox/simulated/**/*.ts', { cwd: root }).flatMap((path) =>
      [
        ...readFileSync(join(root, path), 'utf8').matchAll(/import type \{([^}]*)\} from '[./]*\/ports\//g),
      ].flatMap(([, names = '']) => names.split(',').map((name) => name.trim())),
    ),
  );
  const simulated = [...services.matchAll(/^ {2}readonly (\w+)\??: (\w+);/gm)]
    .filter(([, , type = '']) => types.has(type))
    .map(([, name = '']) => name)
    .filter((name) => !used.includes(name));
  expect(simulated).toContain('chains');
  const declared = readSimulated(root).map(({ name }) => name);
  expect(simulated.filter((name) => !declared.includes(name))).toEqual([]);
});
