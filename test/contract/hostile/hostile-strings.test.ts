import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import document from '../../../openapi/openapi.json' with { type: 'json' };
import { operations } from '../../../src/generated/operations.ts';
import { isLong } from '../../figures/figure.ts';
import { longestSlice, MAX_SLICE_MS } from '../../support/monitoring/longest-slice.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import {
  type DocumentedOperation,
  documentedOperations,
  exampleBodies,
  exampleParameters,
} from '../every-operation/documented-operations.ts';

// Hostile texts in every place of every request that takes a text: each is answered as documented, without a 5xx, and
// none keeps the thread. In short, each text of the document is tried in one operation, with a few fillers; with
// `TEST_LONG=1` in each operation, with all of them.

/** What a body holds; a tenth of it shows the same, except where time is linear. */
const LONGEST = isLong ? 1_000_000 : 100_000;
/** Node refuses heads of more than 16 KB; escaped, a character takes up to nine bytes. */
const LONGEST_IN_HEAD = 14_000;

/** What a text is filled with. */
const fillers = [
  ...[' ', '\t', '\n', '/', '-', '.', '0', '1', 'a', 'f', 'A', '@', ',', ':', '=', '+', '%', '#', '*', '_'],
  ...[
    'a@',
    'a.',
    '.a',
    'a b',
    'a-',
    ':a',
    '[]',
    '()',
    '{',
    '[',
    '((',
    '%25',
    '%00',
    '0x',
    '\\"',
    '${',
    '<a>',
  ],
  ...['\0', '\u0301', 'e\u0301', '\ud800', '\udc00', '\ud83e\udd8a', '\ufdfa', '\u200d', '\u0130', '\u202e'],
  ...[
    'AAAA',
    'AA==',
    '-----BEGIN PUBLIC KEY-----',
    'did:service:',
    'https://a',
    'a@b.c,',
    "m/0'/",
    '1e9',
    '9',
  ],
];

/** What a text begins with, so that a parser reads on. `same` is the example of the document. */
const heads = [
  '',
  'same',
  '0x',
  '+1',
  'https://a.',
  'did:service:',
  'lnbc',
  'eip155:',
  'a@',
  '-----BEGIN PUBLIC KEY-----\n',
];
/** What a text ends with, so that a pattern that has matched so far does not. */
const tails = ['', '!', '\u0001', '\n'];

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly maxLength?: number;
  readonly enum?: unknown;
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
}

type Path = readonly (string | number)[];

interface Place {
  /** Of the schema, which several operations share. */
  readonly id: string;
  readonly path: Path;
  readonly maxLength: number;
}

const MAX_DEPTH = 9;

/** The places of texts below a schema; a branch of `oneOf` is entered only where the example has its members. */
function placesIn(schema: Schema, id: string, path: Path = []): Place[] {
  if (path.length > MAX_DEPTH) return [];
  if (schema.$ref !== undefined) return placesIn(resolve(schema.$ref), schema.$ref, path);
  const isText =
    [schema.type].flat().includes('string') && schema.enum === undefined && schema.const === undefined;
  const found = isText ? [{ id, path, maxLength: Math.min(schema.maxLength ?? LONGEST, LONGEST) }] : [];
  for (const [name, each] of Object.entries(schema.properties ?? {}))
    found.push(...placesIn(each, `${id}/${name}`, [...path, name]));
  if (typeof schema.additionalProperties === 'object')
    found.push(...placesIn(schema.additionalProperties, `${id}/*`, [...path, 'more']));
  if (schema.items !== undefined) found.push(...placesIn(schema.items, `${id}/0`, [...path, 0]));
  for (const [index, each] of [...(schema.oneOf ?? []), ...(schema.anyOf ?? [])].entries())
    found.push(...placesIn(each, `${id}|${index}`, path));
  return found;
}

function resolve($ref: string): Schema {
  const names = $ref.slice(2).split('/');
  return names.reduce<unknown>((node, name) => (node as Record<string, unknown>)[name], document) as Schema;
}

/** A copy of the body with another text in the place; undefined where the body has no such place. */
function withText(body: unknown, path: Path, text: string): unknown {
  const copy = structuredClone({ root: body }) as Record<string | number, unknown>;
  let parent = copy;
  const full = ['root', ...path];
  for (const key of full.slice(0, -1)) {
    const next = parent[key];
    if (typeof next !== 'object' || next === null) return undefined;
    parent = next as typeof parent;
  }
  parent[full.at(-1)!] = text;
  return copy.root;
}

function textAt(body: unknown, path: Path): string {
  let value = body;
  for (const key of path) value = (value as Record<string | number, unknown> | undefined)?.[key];
  return typeof value === 'string' ? value : '';
}

/** A place in the body of an operation, or a parameter of it. */
interface Target {
  readonly operation: DocumentedOperation;
  readonly place: Place;
  readonly part: 'body' | 'path' | 'query' | 'header';
  readonly example: unknown;
}

function targetsOf(operation: DocumentedOperation): Target[] {
  const { operationId, requestBody, parameters = [] } = operation;
  const schema = requestBody?.content['application/json'].schema as Schema | undefined;
  const seen = new Set<string>();
  const inBody = (schema === undefined ? [] : placesIn(schema, operationId)).flatMap((place) => {
    const example = exampleBodies(operation).find((body) => withText(body, place.path, '') !== undefined);
    if (example === undefined || seen.has(place.id + place.path.join('/'))) return [];
    seen.add(place.id + place.path.join('/'));
    return [{ operation, place, part: 'body' as const, example }];
  });
  const inHead = parameters.flatMap(({ name, in: part, schema: ofParameter }) => {
    const [place] = placesIn(ofParameter as Schema, `${part}:${name}`);
    if (place === undefined) return [];
    const target = { id: place.id, path: [name], maxLength: place.maxLength };
    return [{ operation, place: target, part: part as Target['part'], example: undefined }];
  });
  return [...inBody, ...inHead];
}

const everywhere = documentedOperations.flatMap(targetsOf);
const targets = isLong
  ? everywhere
  : [...new Map(everywhere.map((target) => [target.place.id, target])).values()];

/** The texts for a place: at its greatest length, and in long at the greatest of a request, which it may refuse. */
function* textsFor({ place, part, example }: Target, at: number): Generator<string> {
  const longest = part === 'body' ? LONGEST : LONGEST_IN_HEAD;
  const lengths = [...new Set([Math.min(place.maxLength, longest), ...(isLong ? [longest] : [])])];
  const same = textAt(example, place.path);
  const count = isLong ? fillers.length : 1;
  for (let each = 0; each < count; each += 1) {
    const filler = fillers[(at * count + each) % fillers.length]!;
    const head = heads[(at + each) % heads.length]!.replace('same', same);
    const tail = tails[(at + each) % tails.length]!;
    for (const length of lengths) {
      const body = head + filler.repeat(Math.ceil(length / filler.length));
      yield body.slice(0, Math.max(0, length - tail.length)) + tail;
    }
  }
}

interface Prepared {
  readonly target: string;
  readonly headers: Record<string, string>;
  readonly body: Buffer | null;
}

function prepare({ operation, place, part, example }: Target, text: string): Prepared {
  const { appId, appSecret } = sandbox;
  const { path, query } = exampleParameters(operation);
  const name = String(place.path[0]);
  const written = part === 'path' || part === 'query' ? escaped(text) : text;
  const values: Record<string, string> = {
    ...Object.fromEntries(Object.entries(path).map(([key, value]) => [key, escaped(String(value))])),
  };
  if (part === 'path') values[name] = written;
  const pairs = Object.entries(query).filter(([key]) => part !== 'query' || key !== name);
  const search = pairs.map(([key, value]) => `${key}=${escaped(String(value))}`);
  if (part === 'query') search.push(`${name}=${written}`);
  const route = operations[operation.operationId].path.replaceAll(
    /\{([^}]+)\}/g,
    (_, key: string) => values[key] ?? 'x',
  );
  const body = part === 'body' ? withText(example, place.path, text) : exampleBodies(operation)[0];
  return {
    target: search.length === 0 ? route : `${route}?${search.join('&')}`,
    headers: {
      authorization: `Basic ${Buffer.from(`${appId}:${appSecret}`).toString('base64')}`,
      'service-app-id': appId,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(part === 'header' ? { [name]: text.replaceAll(/[^\x20-\x7e]/g, '~').trim() } : {}),
    },
    body: body === undefined ? null : Buffer.from(JSON.stringify(body)),
  };
}

/** Escaped, and cut to what a head holds. */
function escaped(text: string): string {
  const all = encodeURIComponent(text.toWellFormed());
  return all.slice(0, LONGEST_IN_HEAD).replace(/%[0-9A-F]?$/, '') || 'x';
}

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

async function send(operation: DocumentedOperation, { target, headers, body }: Prepared): Promise<number> {
  const { method } = operations[operation.operationId];
  const answer = await sandbox.dispatcher.request({
    origin: sandbox.baseUrl,
    path: target,
    method,
    headers,
    body,
  });
  await answer.body.dump();
  return answer.statusCode;
}

const ATTEMPTS = 12;

/** What is wrong with the answer to a text, if anything. A slice is judged by its shortest of several attempts. */
async function judge(one: Target, text: string): Promise<string | undefined> {
  const { operation, place, part } = one;
  const prepared = prepare(one, text);
  let shortest = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < ATTEMPTS && shortest > MAX_SLICE_MS; attempt += 1) {
    const { result: status, longestMs } = await longestSlice(() => send(operation, prepared));
    shortest = Math.min(shortest, longestMs);
    if (status >= 500 || (!(status in operation.responses) && status !== 404))
      return `${described()} answered ${status}`;
  }
  return shortest > MAX_SLICE_MS ? `${described()} took ${Math.round(shortest)} ms at once` : undefined;

  function described(): string {
    const shown = JSON.stringify(text.slice(0, 40));
    return `${operation.operationId} ${part} ${place.path.join('/')}: ${text.length} characters ${shown}`;
  }
}

describe(`${targets.length} places of texts`, () => {
  test('no text is answered with 5xx or keeps the thread', {
    timeout: isLong ? 7_200_000 : 120_000,
  }, async () => {
    const faults: string[] = [];
    for (const [at, one] of targets.entries()) {
      for (const text of textsFor(one, at)) {
        const fault = await judge(one, text);
        if (fault !== undefined) faults.push(fault);
      }
    }
    expect(faults).toEqual([]);
  });
});
