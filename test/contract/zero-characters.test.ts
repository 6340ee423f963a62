import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OperationId } from '../../src/generated/operations.ts';
import { attempt, type Refusal } from '../support/call.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';

// PostgreSQL's texts cannot hold U+0000: wherever a request has a text, it is refused before anything is asked of it.
interface DocumentOperation {
  readonly operationId?: OperationId;
  readonly parameters?: readonly { name: string; in: string; example?: unknown }[];
  readonly requestBody?: {
    readonly content: {
      readonly 'application/json': { readonly examples: Record<string, { readonly value: unknown }> };
    };
  };
}

const document = JSON.parse(
  readFileSync(join(import.meta.dirname, '..', '..', 'openapi', 'openapi.json'), 'utf8'),
) as { paths: Record<string, Record<string, DocumentOperation>> };
const operations = Object.values(document.paths)
  .flatMap((item) => Object.values(item))
  .filter(({ operationId }) => operationId !== undefined);

type Parts = { path: object; query: object; body: unknown };
interface Place {
  readonly id: OperationId;
  readonly in: 'path' | 'query' | 'body';
  readonly pointer: string;
  readonly input: Parts;
}

/** Every copy of `value` in which one text ends with U+0000, with the place of that text. */
function* spoiled(value: unknown, pointer = ''): Generator<{ pointer: string; value: unknown }> {
  if (typeof value === 'string') yield { pointer, value: `${value}\0` };
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    const inside = `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    for (const one of spoiled(member, inside)) {
      const copy = Array.isArray(value) ? [...value] : { ...value };
      (copy as Record<string, unknown>)[name] = one.value;
      yield { pointer: one.pointer, value: copy };
    }
  }
}

function* placesOf(operation: DocumentOperation): Generator<Place> {
  const of = (place: string) =>
    Object.fromEntries(
      (operation.parameters ?? [])
        .filter((parameter) => parameter.in === place && parameter.example !== undefined)
        .map(({ name, example }) => [name, example]),
    );
  const examples = operation.requestBody?.content['application/json'].examples ?? {};
  const bodies =
    operation.requestBody === undefined ? [undefined] : Object.values(examples).map(({ value }) => value);
  for (const [index, body] of bodies.entries()) {
    const input: Parts = { path: of('path'), query: of('query'), body };
    for (const part of ['path', 'query', 'body'] as const) {
      if (part !== 'body' && index > 0) continue;
      for (const { pointer, value } of spoiled(input[part])) {
        yield { id: operation.operationId!, in: part, pointer, input: { ...input, [part]: value } };
      }
    }
  }
}

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

test('a zero character in any text of any request is refused, and its place is named', async () => {
  const places = operations.flatMap((operation) => [...placesOf(operation)]);
  const told = { byName: 0, asMalformed: 0 };
  for (const place of places) {
    const { status, body } = await attempt(sandbox, place.id, place.input);
    const where = `${place.id} ${place.in} ${place.pointer}`;
    expect(`${where}: ${status}`).toBe(`${where}: 400`);
    const { error, data } = body as Refusal;
    const issues = (data?.issues ?? []) as { in: string; pointer: string; message: string }[];
    if (error.endsWith('must not contain U+0000')) {
      expect(issues).toEqual([{ in: place.in, pointer: place.pointer, message: 'must not contain U+0000' }]);
      told.byName += 1;
    } else {
      // Its own format, such as an address or one of a few words, refuses it first.
      expect(issues.length, where).toBeGreaterThan(0);
      told.asMalformed += 1;
    }
  }
  expect(told.byName).toBeGreaterThan(300);
  expect(told.asMalformed).toBeGreaterThan(300);
});
