import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type OperationId, operations } from '../../../src/generated/operations.ts';
import { figureSize, isLong, noteFigure } from '../../figures/figure.ts';
import { attempt } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import {
  type DocumentedOperation,
  documentedOperations,
  exampleBodies,
  exampleParameters,
} from './documented-operations.ts';

// Random invalid requests to every operation: none is answered with a 5xx, and no body that the document refuses is
// accepted. Every response is validated against the document. `TEST_LONG=1` sends a million.
const swept = documentedOperations.filter((operation) => partsOf(operation).length > 0);

/** Requests that are on their way at once: waiting for each alone takes longer than answering it. */
const AT_ONCE = 10;

/** To each operation, in whole batches. */
const requests =
  Math.ceil(figureSize({ short: 20 * swept.length, long: 6_000 * swept.length }) / swept.length / AT_ONCE) *
  AT_ONCE;

/** Of a text in the URL: Node itself refuses heads of more than 16 KB. */
const LONGEST = 300;

interface Parts {
  readonly path: object;
  readonly query: object;
  readonly body: unknown;
}

interface SpoiltRequest {
  readonly parts: Parts;
  readonly headers: Readonly<Record<string, string>>;
}

const deep = (depth: number) => JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`) as unknown;

/** As the unit `binary` of fast-check, whose table of all characters takes three seconds. */
const anyCharacter = fc
  .oneof(fc.integer({ min: 0, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((code) => String.fromCodePoint(code));

/** What a member is replaced with. */
const strange = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, 0, -1, 1.5, 2 ** 53, -(2 ** 63), 1e308, 5e-324),
  fc.constantFrom<unknown>(
    '',
    ' ',
    '0x',
    '0',
    '-1',
    '1e400',
    'NaN',
    '__proto__',
    '../../..',
    '%00',
    '\u202e',
    '\ud800',
  ),
  fc.constantFrom<unknown>([], {}, [[]], [null], { a: { b: [] } }, deep(200)),
  fc.constantFrom('x'.repeat(300), '9'.repeat(100), `0x${'f'.repeat(128)}`, '🦊'.repeat(50), 'ﷺ'.repeat(40)),
  fc.string({ unit: anyCharacter, maxLength: 20 }),
  fc.integer(),
  fc.double(),
  fc.jsonValue({ maxDepth: 2 }),
);

type Change =
  | { readonly kind: 'replace'; readonly at: number; readonly value: unknown }
  | { readonly kind: 'remove' | 'repeat' | 'duplicate'; readonly at: number }
  | { readonly kind: 'add'; readonly at: number; readonly name: string; readonly value: unknown };

const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('replace' as const), at: fc.nat(), value: strange }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom('remove', 'repeat', 'duplicate'), at: fc.nat() }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('add' as const),
      at: fc.nat(),
      name: fc.constantFrom('__proto__', 'constructor', 'id', 'owner', 'owner_id', 'type', 'extra', ''),
      value: strange,
    }),
  },
);

/** The places of a JSON value: itself and everything inside. */
function placesOf(
  value: unknown,
  place: readonly (string | number)[] = [],
): (readonly (string | number)[])[] {
  if (typeof value !== 'object' || value === null) return [place];
  const keys = Array.isArray(value) ? [...value.keys()] : Object.keys(value);
  return [place, ...keys.flatMap((key) => placesOf((value as never)[key], [...place, key]))];
}

function changed(value: unknown, { at, ...rest }: Change): unknown {
  const places = placesOf(value);
  const place = places[at % places.length]!;
  const copy = structuredClone({ root: value });
  let parent: Record<string | number, unknown> = copy;
  const full = ['root', ...place];
  for (const key of full.slice(0, -1)) parent = parent[key] as typeof parent;
  const last = full.at(-1)!;
  const old = parent[last];
  if (rest.kind === 'replace') parent[last] = rest.value;
  else if (rest.kind === 'add') {
    if (Array.isArray(old)) old.push(rest.value);
    else if (typeof old === 'object' && old !== null) {
      // Assigned, `__proto__` would not become a member.
      const descriptor = { value: rest.value, enumerable: true, configurable: true, writable: true };
      Object.defineProperty(old, rest.name, descriptor);
    }
  } else if (rest.kind === 'duplicate') parent[last] = [old, old];
  else if (rest.kind === 'repeat' && Array.isArray(old))
    parent[last] = old.flatMap((item) => Array(60).fill(item));
  else if (Array.isArray(parent)) parent.splice(Number(last), 1);
  else delete parent[last];
  return copy.root;
}

const header = fc.record(
  {
    'service-idempotency-key': fc.oneof(
      fc.string({ maxLength: 300 }),
      fc.constantFrom('a', '', 'x'.repeat(300)),
    ),
    'service-request-expiry': fc.oneof(
      fc.constantFrom('0', '-1', 'NaN', '1e999', '9'.repeat(40)),
      fc.string(),
    ),
    'service-authorization-signature': fc.oneof(
      fc.constantFrom('', ',', 'AAAA', 'MEUCIQ==', `${'MEQCIAAA,'.repeat(20)}A`),
      fc.base64String({ maxLength: 100 }),
    ),
  },
  { requiredKeys: [] },
);

/** Header values that HTTP can carry at all. */
function sendable(headers: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const printable = (text: string) => text.replaceAll(/[^\x21-\x7e]/g, '~');
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, printable(value)]],
    ),
  );
}

/** Requests to an operation that differ in one to three places from what the document shows. */
function spoilt(operation: DocumentedOperation): fc.Arbitrary<SpoiltRequest> {
  const bodies = exampleBodies(operation);
  return fc
    .record({
      body: fc.constantFrom(...bodies),
      changes: fc.array(fc.tuple(fc.constantFrom<keyof Parts>(...partsOf(operation)), change), {
        minLength: 1,
        maxLength: 3,
      }),
      headers: fc.oneof({ weight: 4, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: header }),
    })
    .map(({ body, changes, headers }) => {
      let parts: Parts = { ...exampleParameters(operation), body };
      for (const [part, one] of changes) parts = { ...parts, [part]: changed(parts[part], one) };
      return { parts, headers: sendable(headers) };
    });
}

function partsOf({ requestBody, parameters = [] }: DocumentedOperation): (keyof Parts)[] {
  const has = (place: string) => parameters.some((parameter) => parameter.in === place);
  const body: (keyof Parts)[] = requestBody === undefined ? [] : ['body', 'body', 'body', 'body'];
  return [...body, ...(has('path') ? ['path' as const] : []), ...(has('query') ? ['query' as const] : [])];
}

/** A second opinion of bodies, compiled by Ajv straight from the document. */
function createBodyJudge(document: object): (operation: DocumentedOperation, body: unknown) => boolean {
  const ajv = new Ajv2020({ strict: false, validateSchema: false, validateFormats: false });
  ajv.addSchema({ $id: 'document', ...document });
  const compiled = new Map<OperationId, ValidateFunction>();
  return ({ operationId, requestBody }, body) => {
    const $ref = requestBody?.content['application/json'].schema.$ref;
    if ($ref === undefined) return true;
    const validate = compiled.get(operationId) ?? ajv.compile({ $ref: `document${$ref}` });
    compiled.set(operationId, validate);
    return validate(body) === true;
  };
}

let sandbox: TestSandbox;
let isAllowed: ReturnType<typeof createBodyJudge>;
beforeAll(async () => {
  sandbox = await startSandbox();
  isAllowed = createBodyJudge(await sandbox.document());
});
afterAll(() => sandbox[Symbol.asyncDispose]());

describe(`${requests} spoilt requests`, () => {
  test.each(swept)(
    '$operationId answers none with 5xx, and accepts no body that the document refuses',
    {
      timeout: isLong ? 600_000 : 60_000,
    },
    async (operation) => {
      const batch = fc.array(spoilt(operation), { minLength: AT_ONCE, maxLength: AT_ONCE });
      await fc.assert(
        fc.asyncProperty(batch, async (spoiltRequests) => {
          await Promise.all(spoiltRequests.map((request) => judge(operation, request)));
        }),
        { numRuns: requests / AT_ONCE, endOnFailure: true, ...(isLong ? {} : { seed: 1 }) },
      );
    },
  );
});

const sums = { requests: 0, accepted: 0, refused: 0 };
afterAll(() => noteFigure({ operations: swept.length, ...sums }));

async function judge(operation: DocumentedOperation, { parts, headers }: SpoiltRequest): Promise<void> {
  const { operationId: id } = operation;
  const { status, body } = await attempt(sandbox, id, asStrings(parts), { headers });
  sums.requests += 1;
  sums[status < 400 ? 'accepted' : 'refused'] += 1;
  const answered = `${id} answered ${status} ${JSON.stringify(body)}`;
  expect(status, answered).toBeLessThan(500);
  const sent = parts.body === undefined ? undefined : (JSON.parse(JSON.stringify(parts.body)) as unknown);
  if (operations[id].hasBody && sent !== undefined && !isAllowed(operation, sent)) {
    expect(status, answered).toBeGreaterThanOrEqual(400);
  }
}

/** Path parameters are texts; whatever else a change made of them is written as one. */
function asStrings({ path, ...parts }: Parts): Parts {
  const text = (value: unknown) => {
    const written = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
    const isSegment = written.isWellFormed() && written !== '' && !/^\.{1,2}$/.test(written);
    return isSegment ? written.slice(0, LONGEST).toWellFormed() : 'x';
  };
  const named = Object.entries(typeof path === 'object' && path !== null ? path : {});
  return {
    ...parts,
    query: wellFormed(parts.query),
    path: Object.fromEntries(named.map(([name, value]) => [name, text(value)])),
  };
}

/** Query parameters as a client can write them. */
function wellFormed(query: unknown): object {
  if (typeof query !== 'object' || query === null) return {};
  return Object.fromEntries(
    Object.entries(query)
      .slice(0, 10)
      .map(([name, value]) => [
        name.toWellFormed(),
        (typeof value === 'object' ? JSON.stringify(value) : String(value)).slice(0, LONGEST),
      ]),
  );
}
