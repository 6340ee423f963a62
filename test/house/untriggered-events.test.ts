import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root, sourceFiles, withoutComments } from './source-files.ts';

// The events of the contract that nothing records yet. Implementing the change that an event reports takes its line
// away; the list may only shrink. An event counts as recorded when the domain names it: a type that is put together
// from parts is written out in a table beside the code that does so.
const listed = readFileSync(join(import.meta.dirname, 'untriggered-events.txt'), 'utf8')
  .split('\n')
  .filter((line) => line !== '');

/** What the list may hold at most; lower it whenever the list has shrunk. */
const mostListed = 35;

const document = JSON.parse(readFileSync(join(root, 'openapi', 'openapi.json'), 'utf8')) as {
  webhooks: Record<string, unknown>;
};
const domain = sourceFiles('src/domain/**/*.ts').map(({ text }) => withoutComments(text));

test('the list names every event that nothing records, and it has only shrunk', () => {
  const untriggered = Object.keys(document.webhooks)
    .filter((type) => !domain.some((code) => code.includes(`'${type}'`)))
    .sort();
  expect(listed).toEqual(untriggered);
  expect(listed.length).toBeLessThanOrEqual(mostListed);
});
