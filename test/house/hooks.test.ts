import { expect, test } from 'vitest';
import { sourceFiles } from './source-files.ts';

/** The lines of a text that register a hook of the end within a hook of the beginning. */
function ignoredHooks(text: string): string[] {
  const hooks = text.matchAll(/^( *)before(?:All|Each)\(.*\{\n((?:\1 .*\n|\n)*)/gm);
  return [...hooks].flatMap(([, , body]) => body!.match(/^ *after(?:All|Each)\(.*/gm) ?? []);
}

// Vitest ignores such a hook: what it should stop would run beside all later files of the same process.
test('hooks of the beginning return what is done at the end', () => {
  expect(
    sourceFiles('{test,examples,templates}/**/*.ts').flatMap(({ path, text }) =>
      ignoredHooks(text).map((line) => `${path}: ${line}`),
    ),
  ).toEqual([]);
});

test('the check sees a hook within another one, and not the one after it', () => {
  const text = [
    'beforeAll(async () => {',
    '  const server = await start();',
    '',
    '  afterAll(() => server.close());',
    '});',
    'afterAll(async () => end());',
    "describe('more', () => {",
    '  beforeEach(() => {',
    '    begin();',
    '  });',
    '  afterEach(() => stop());',
    '});',
    '',
  ].join('\n');
  expect(ignoredHooks(text)).toEqual(['  afterAll(() => server.close());']);
});
