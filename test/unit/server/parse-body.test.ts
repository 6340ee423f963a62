import { expect, test } from 'vitest';
import { parseBody } from '../../../src/server/parse-body.ts';
import { toyOperations } from './toy-server.ts';

const byId = new Map(toyOperations.map((operation) => [operation.id, operation]));
const createToy = byId.get('createToy')!;
const json = { 'content-type': 'application/json' };

function refusal(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return (error as { toBody(): unknown }).toBody();
  }
  return 'no refusal';
}

function bodyFault(message: string): object {
  return {
    error: `body: ${message}`,
    code: 'invalid_data',
    data: { issues: [{ in: 'body', pointer: '', message }] },
  };
}

test('JSON is parsed unchanged', () => {
  expect(parseBody(createToy, json, Buffer.from('{"name":"Bär","n":1e2}'))).toEqual({ name: 'Bär', n: 100 });
});

test.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"'])(
  '%s is accepted',
  (type) => {
    expect(parseBody(createToy, { 'content-type': type }, Buffer.from('{}'))).toEqual({});
  },
);

test.each([undefined, 'text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=latin1'])(
  'a body of type %s is refused',
  (type) => {
    const headers = type === undefined ? {} : { 'content-type': type };
    expect(refusal(() => parseBody(createToy, headers, Buffer.from('{}')))).toEqual({
      error: 'Content-Type must be application/json',
    });
  },
);

test('a compressed body is refused', () => {
  expect(
    refusal(() => parseBody(createToy, { ...json, 'content-encoding': 'gzip' }, Buffer.from('{}'))),
  ).toEqual({
    error: 'compressed bodies are not supported: leave out `Content-Encoding`',
  });
});

test('invalid JSON is refused with the position of the fault', () => {
  expect(refusal(() => parseBody(createToy, json, Buffer.from('{"name": oops}')))).toEqual(
    bodyFault('broken JSON at line 1, column 10: expected a value'),
  );
});

test('a text that is not UTF-8 is refused', () => {
  expect(refusal(() => parseBody(createToy, json, Buffer.from([0x22, 0xff, 0x22])))).toEqual(
    bodyFault('the text is not UTF-8'),
  );
});

test('a deeply nested body is refused before it can exhaust the stack', () => {
  const deep = (depth: number) =>
    Buffer.from(`{"note":${'['.repeat(depth)}${']'.repeat(depth)}}${' '.repeat(1024)}`);
  expect(refusal(() => parseBody(createToy, json, deep(128)))).toEqual(
    bodyFault('nested deeper than 128 levels'),
  );
  expect(parseBody(createToy, json, deep(127))).toHaveProperty('note');
});

test('an object with too many members, and too many objects, are refused before they are parsed', () => {
  const wide = (count: number) =>
    Buffer.from(
      JSON.stringify({ note: Object.fromEntries(Array.from({ length: count }, (_, i) => [`k:${i}`, 1])) }),
    );
  expect(refusal(() => parseBody(createToy, json, wide(5001)))).toEqual(
    bodyFault('an object with more than 5000 members'),
  );
  expect(Object.keys((parseBody(createToy, json, wide(5000)) as { note: object }).note)).toHaveLength(5000);
  const many = (count: number) =>
    Buffer.from(JSON.stringify({ note: Array.from({ length: count }, () => ({})) }));
  expect(refusal(() => parseBody(createToy, json, many(50_000)))).toEqual(
    bodyFault('more than 50000 objects and lists'),
  );
  expect(parseBody(createToy, json, many(49_998))).toHaveProperty('note');
  const long = (count: number) =>
    Buffer.from(JSON.stringify({ note: Array.from({ length: count }, () => 1) }));
  expect(refusal(() => parseBody(createToy, json, long(100_001)))).toEqual(
    bodyFault('more than 100000 values'),
  );
  expect(parseBody(createToy, json, long(100_000))).toHaveProperty('note');
});

test('brackets inside strings do not nest', () => {
  const text = JSON.stringify({ note: `\\"${'['.repeat(5000)}` });
  expect(parseBody(createToy, json, Buffer.from(text))).toEqual(JSON.parse(text));
});

test('a missing body is refused if the operation requires one, otherwise undefined', () => {
  expect(refusal(() => parseBody(createToy, {}, Buffer.alloc(0)))).toEqual(
    bodyFault('the request has no body'),
  );
  expect(parseBody(byId.get('playWithToy')!, {}, Buffer.alloc(0))).toBeUndefined();
});

test('any body sent to an operation without one is ignored', () => {
  expect(
    parseBody(byId.get('getToy')!, { 'content-type': 'text/plain' }, Buffer.from('{oops')),
  ).toBeUndefined();
});

test.each([
  ['{"name":"a","name":"b"}', '/name'],
  ['{"name":"a","n\\u0061me":"b"}', '/name'],
  ['{"a":[{"b":1},{"c":{"x":"y"},"d":"{\\"b\\":1,\\"b\\":2}","c":2}]}', '/a/1/c'],
  ['{"a/b~":{"":1,"":2}}', '/a~1b~0/'],
  ['{"a":{"b":[1,[2,{"c":[],"c":[]}]]}}', '/a/b/1/1/c'],
  ['[{"a":1,"b":{},"a":1}]', '/0/a'],
  ['{"__proto__":1,"__proto__":2}', '/__proto__'],
  ['{"1":{},"2":"x","1":{}}', '/1'],
  [`{"a":"${'x'.repeat(2_000)}","b":[],"b":[]}`, '/b'],
])('a member that is there twice is refused with its pointer: %s', (text, pointer) => {
  const message = 'expected the member once, got it twice';
  expect(refusal(() => parseBody(createToy, json, Buffer.from(text)))).toEqual({
    error: `${pointer}: ${message}`,
    code: 'invalid_data',
    data: { issues: [{ in: 'body', pointer, message }] },
  });
});

test.each([
  '{"a":{"b":1},"c":{"b":1},"d":[{"b":":"},{"b":"\\":"}]}',
  '{"__proto__":{"a":1}}',
  '7',
  '[]',
  '":"',
])('names that are different, or in different objects, are accepted: %s', (text) => {
  expect(parseBody(createToy, json, Buffer.from(text))).toEqual(JSON.parse(text));
});
