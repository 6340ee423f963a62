import { expect, test } from 'vitest';
import { parseQuery } from '../../../src/server/route-index.ts';

test.each([
  ['/v1/toys', {}],
  ['/v1/toys?', {}],
  ['/v1/toys?limit=5&cursor=a%20b', { limit: '5', cursor: 'a b' }],
  ['/v1/toys?tags=red&tags=blue', { tags: ['red', 'blue'] }],
  ['/v1/toys?tags[]=red', { tags: ['red'] }],
  ['/v1/toys?tags[]=red&tags[]=blue&tags=green', { tags: ['red', 'blue', 'green'] }],
  ['/v1/toys?empty=&flag', { empty: '', flag: '' }],
  ['/v1/toys?at=50%', { at: '50%' }],
  ['/v1/toys?plus=a+b', { plus: 'a b' }],
])('%s', (target, query) => {
  expect({ ...parseQuery(target) }).toEqual(query);
});

test('a parameter named like a member of Object.prototype is an ordinary name', () => {
  const query = parseQuery('/?__proto__=x&constructor=y&toString[]=z');
  expect(Object.getPrototypeOf(query)).toBeNull();
  expect(Object.entries(query)).toEqual([
    ['__proto__', 'x'],
    ['constructor', 'y'],
    ['toString', ['z']],
  ]);
});
