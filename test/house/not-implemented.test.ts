import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { root, sourceFiles } from './source-files.ts';

// The operations that are not built yet. An operation leaves the list, the contract's 501 and its stub together.
// The list may only shrink: whoever adds a line takes something away that callers may use already.
const listed = readFileSync(join(import.meta.dirname, 'not-implemented.txt'), 'utf8')
  .trim()
  .split('\n');

/** What the list may hold at most; lower it whenever the list has shrunk. */
const mostListed = 78;

/** Built in part: `walletRpc` answers 501 to the methods that need a network. */
const partlyBuilt = ['walletRpc'];

const stubs = sourceFiles('src/handlers/**/*.ts')
  .filter(({ text }) => text.includes('throw notImplemented('))
  .map(({ path }) => basename(path, '.ts'))
  .sort();

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

test('the contract declares 501 for exactly the operations whose handler is still the stub', () => {
  expect(declared).toEqual([...stubs, ...partlyBuilt].sort());
});

test('the list of operations that are not built is true, and it has only shrunk', () => {
  expect(listed.filter((line) => line !== '')).toEqual(stubs);
  expect(listed.length).toBeLessThanOrEqual(mostListed);
});
