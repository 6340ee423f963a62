import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root, sourceFiles } from './source-files.ts';

// The operations that are not implemented yet, and those of which a part is not, marked `(partly)`. An operation
// leaves the list, the contract's 501 and its stub together. The list may only shrink: a change that adds a line takes
// something away that callers may use already.
const listed = readFileSync(join(import.meta.dirname, 'not-implemented.txt'), 'utf8')
  .split('\n')
  .filter((line) => line !== '');

/** What the list may hold at most; lower it whenever the list has shrunk. */
const mostListed = 0;

const stubs = sourceFiles('src/api/*.ts').flatMap(({ text }) =>
  [...text.matchAll(/throw notImplemented\('(\w+)'\)/g)].map(([, id = '']) => id),
);
const partly = listed.filter((line) => line.endsWith(' (partly)'));

interface DocumentOperation {
  operationId: string;
  responses: Record<string, unknown>;
}

const document = JSON.parse(readFileSync(join(root, 'openapi', 'openapi.json'), 'utf8')) as {
  paths: Record<string, Record<string, DocumentOperation>>;
};
const declared = Object.values(document.paths)
  .flatMap((item) => Object.values(item))
  .filter(({ responses }) => responses['501'] !== undefined)
  .map(({ operationId }) => operationId)
  .sort();

test('the list names every stub, and it has only shrunk', () => {
  expect(listed).toEqual([...stubs, ...partly].sort());
  expect(listed.length).toBeLessThanOrEqual(mostListed);
});

test('the contract declares 501 for exactly the listed operations', () => {
  expect(declared).toEqual(listed.map((line) => line.replace(' (partly)', '')));
});
