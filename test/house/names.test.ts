import { globSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { expect, test } from 'vitest';
import { operations } from '../../src/generated/operations.ts';
import { operations as controlOperations } from '../../src/sandbox/generated/operations.ts';
import { root, sourceFiles, withoutComments } from './source-files.ts';

const files = sourceFiles(
  'src/**/*.{ts,tsx}',
  'mocks/*.ts',
  'codegen/**/*.ts',
  'test/**/*.ts',
  'bench/**/*.ts',
);
// A test of one operation bears the operation's name.
const namedByOperation = /^test\/contract\//;

function nameOf(path: string): string {
  return basename(path).replace(/\.ts$/, '');
}

test('files are kebab-case, except those named after an operation', () => {
  const kebab = /^[a-z0-9]+(-[a-z0-9]+)*(\.(entity|test|config|d))?\.tsx?$/;
  const strange = files.filter(({ path }) => !namedByOperation.test(path) && !kebab.test(basename(path)));
  expect(strange.map(({ path }) => path)).toEqual([]);
});

test.each([
  ['src/api', operations],
  ['src/sandbox/handlers', controlOperations],
] as const)('%s exports each operation from the file of its tag, and nothing else', (folder, table) => {
  const exported = sourceFiles(`${folder}/*.ts`).flatMap(({ path, text }) =>
    [...text.matchAll(/^export (?:const|function|async function|type|interface) (\w+)/gm)].map(
      ([, name]) => `${nameOf(path)}.${name}`,
    ),
  );
  const expected = Object.values(table).map(({ id, tag }) => `${tag.replaceAll('_', '-')}.${id}`);
  expect(exported.sort()).toEqual(expected.sort());
});

test('operations import a verb with their own name as `<name>Verb`, never a file as a namespace', () => {
  const handlers = sourceFiles('src/api/*.ts', 'src/sandbox/handlers/*.ts');
  const namespaces = handlers.filter(({ text }) => /^import (type )?\* as /m.test(text));
  const other = handlers.flatMap(({ path, text }) =>
    [...text.matchAll(/^import \{([^}]*)\} from '[^']*\/domain\//gm)].flatMap(([, names = '']) =>
      [...names.matchAll(/(\w+) as (\w+)/g)]
        .filter(([, name, local]) => local !== `${name}Verb`)
        .map(([alias]) => `${path}: ${alias}`),
    ),
  );
  expect([...namespaces.map(({ path }) => path), ...other]).toEqual([]);
});

test('handlers of operations that are open to all, and no others, have no app to read', () => {
  const open = sourceFiles('src/api/*.ts').flatMap(({ text }) =>
    [...text.matchAll(/: OpenHandler<'(\w+)'/g)].map(([, id]) => id),
  );
  const expected = Object.values(operations).filter(({ security }) => security === 'none');
  expect(open.sort()).toEqual(expected.map(({ id }) => id).sort());
});

test('no barrels, no default exports, no catch-all folders', () => {
  const barrels = files.filter(({ path }) => basename(path) === 'index.ts');
  const defaults = files.filter(
    ({ path, text }) => basename(path) !== 'vitest.config.ts' && /^export default\b/m.test(text),
  );
  const shapeless = files.filter(({ path }) => /\/(utils?|helpers?|common|misc|lib)\//.test(path));
  expect([...barrels, ...defaults, ...shapeless].map(({ path }) => path)).toEqual([]);
});

test('classes are only for errors, and for what other programs require to be extended', () => {
  const theirs = ['Migration', 'SqliteQueryCompiler', 'NodeEnvironment', 'OpenAPIRouter', 'OpenAPIValidator'];
  const classes = files
    // The samples of Java that readers copy are classes.
    .filter(({ path }) => path.startsWith('src/') && path !== 'src/web/docs/compiled-samples.ts')
    .flatMap(({ path, text }) =>
      [...withoutComments(text).matchAll(/\bclass (\w+)( extends (\w+))?/g)].map(
        ([, name = '', , parent]) => ({
          place: `${path}: ${name}`,
          isError: (/Error$/.test(name) && /Error$/.test(parent ?? '')) || theirs.includes(parent ?? ''),
        }),
      ),
    );
  expect(classes.filter(({ isError }) => !isError).map(({ place }) => place)).toEqual([]);
});

test('files stay small enough to be seen whole', () => {
  const large = files
    .filter(({ path }) => !path.startsWith('test/') && !path.startsWith('bench/'))
    .map(({ path, text }) => ({ path, lines: text.split('\n').length - 1 }))
    .filter(({ lines }) => lines > 400);
  expect(large).toEqual([]);
});

test('folders stay small enough to be seen whole', () => {
  // The pipeline is one module, and so is the wiring.
  // Migrations only grow in number.
  const larger: Record<string, number> = {
    'src/server': 33,
    'src/compose': 30,
    'src/storage/migrations': 999,
  };
  const limitOf = (folder: string): number => larger[folder] ?? 26;
  const counts = new Map<string, number>();
  for (const { path } of files) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  const crowded = [...counts].filter(([folder, count]) => count > limitOf(folder));
  expect(crowded).toEqual([]);
});

test('nothing names a machine that it was written on', () => {
  const texts = globSync(['*.md', 'docs/**/*.md', 'src/**/*.md', 'bench/*.md', 'openapi/**/*.yaml'], {
    cwd: root,
  });
  const places = [...files, ...sourceFiles(...texts)].filter(({ path, text }) =>
    path.startsWith('test/house/') ? false : /\/(home|Users|root)\/\w+\//.test(text),
  );
  expect(places.map(({ path }) => path)).toEqual([]);
});
