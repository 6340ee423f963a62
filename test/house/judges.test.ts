import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './source-files.ts';

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version?: string }>>;
}

function versions(path: string): Lock['packages'] {
  return (JSON.parse(readFileSync(join(root, path), 'utf8')) as Lock).packages;
}

test('files of test/ get the versions of the root, also where a judge needs another one for itself', () => {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const names = Object.keys({ ...manifest.dependencies, ...manifest.devDependencies });
  const [ofRoot, ofJudges] = [versions('package-lock.json'), versions('test/package-lock.json')];
  const others = names.filter((name) => {
    const [own, judged] = [ofRoot, ofJudges].map((lock) => lock[`node_modules/${name}`]?.version);
    return judged !== undefined && judged !== own;
  });
  // The generators of clients are written against it.
  expect(others).toEqual(['typescript']);
});
