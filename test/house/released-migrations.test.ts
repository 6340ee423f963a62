import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { chainStoreSteps } from '../../src/sandbox/simulated/chains/store-schema.ts';
import { migrations } from '../../src/storage/migrations/migrations.ts';
import { sourceFiles } from './source-files.ts';

const listed = readFileSync(join(import.meta.dirname, 'released-migrations.txt'), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'));

const digestOf = (...texts: string[]): string =>
  createHash('sha256').update(JSON.stringify(texts)).digest('hex');

const present = [
  ...migrations.map(({ name, postgres, sqlite }) => `${name} ${digestOf(postgres, sqlite)}`),
  ...chainStoreSteps.map((step, index) => `simulated-chains-${index + 1} ${digestOf(step)}`),
];

test('a released migration is as it was released: change the schema by a new one', () => {
  expect(listed.filter((line) => !present.includes(line))).toEqual([]);
});

test('every migration is in released-migrations.txt: add the lines of the new ones', () => {
  expect(present.filter((line) => !listed.includes(line))).toEqual([]);
});

test('migrations are numbered without a gap and named like their files', () => {
  const names = migrations.map(({ name }) => name);
  expect(names.map((name) => name.slice(0, 5))).toEqual(
    names.map((_, index) => `${String(index + 1).padStart(4, '0')}-`),
  );
  const files = sourceFiles('src/storage/migrations/0*.ts').map(({ path }) => path);
  expect(files.sort()).toEqual(names.map((name) => `src/storage/migrations/${name}.ts`));
});
