import { expect, test } from 'vitest';
import { sourceFiles } from './source-files.ts';

/** The accessors of object literals in a text. */
function accessorsIn(text: string): string[] {
  return [...text.matchAll(/^\s+(?:get|set) (?:\w+|\[.*\])\(.*\{$/gm)].map(([line]) => line.trim());
}

// Each evaluation of an object literal with an accessor makes a new hidden class, and V8 keeps that, and whatever the
// accessor refers to, until a full garbage collection. One per request tripled the heap and cost a GET a quarter of its CPU.
test('code that runs for each request makes no objects with accessors', () => {
  for (const room of ['api', 'domain', 'engine', 'ports', 'server', 'storage']) {
    const files = sourceFiles(`src/${room}/**/*.ts`);
    expect(files.length).toBeGreaterThan(5);
    const found = files.flatMap(({ path, text }) => accessorsIn(text).map((line) => `${path}: ${line}`));
    expect(found).toEqual([]);
  }
});

test('the check sees accessors, and neither methods nor properties of that name', () => {
  const text = [
    'return {',
    '  get em() {',
    '    return fork();',
    '  },',
    '  set (value) {',
    '  },',
    '  get: (name) => {',
    '  get(id) {',
    '  set [name](value) {',
    '  async get(id) {',
  ].join('\n');
  expect(accessorsIn(text)).toEqual(['get em() {', 'set [name](value) {']);
});
