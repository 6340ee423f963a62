import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startDocumentMock } from '../../../src/compose/documents/mock-document.ts';
import { startVerifier } from '../../../src/compose/verify.ts';
import { readSandboxConfig } from '../../../src/config.ts';
import { cachedCompilation } from '../../../src/documents/cache.ts';
import { judgeDocument } from '../../../src/documents/judge-document.ts';
import { type OpenedDocument, openDocument } from '../../../src/documents/open-document.ts';
import { pauseRecording } from '../../ledger/record-answers.ts';
import { startCustos, waitFor } from '../../support/run-custos.ts';
import { startSandbox } from '../../support/sandbox.ts';

pauseRecording();

const library = join(import.meta.dirname, 'documents', 'library.yaml');
const controlPlane = join(import.meta.dirname, '..', '..', '..', 'openapi', 'control-plane.json');
let folder: string;
let opened: OpenedDocument;
let mock: Awaited<ReturnType<typeof startDocumentMock>>;
let agent: Agent;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'custos-documents-'));
  opened = await openDocument(library, { cacheFolder: folder });
  mock = await startDocumentMock(opened, readSandboxConfig({ port: '0', logLevel: 'silent' }));
  agent = new Agent({ connect: { ca: mock.caPem } });
});
afterAll(async () => {
  await agent.destroy();
  await mock.close();
  rmSync(folder, { recursive: true });
});

interface Sent {
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
}

async function send(method: 'GET' | 'POST' | 'PUT', path: string, { headers = {}, body }: Sent = {}) {
  const answer = await agent.request({
    ...{ origin: mock.baseUrl, path, method },
    headers: { authorization: 'Bearer any', 'content-type': 'application/json', ...headers },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await answer.body.text();
  const type = String(answer.headers['content-type'] ?? '');
  return { status: answer.statusCode, body: type.includes('json') ? JSON.parse(text) : text, type };
}

const book = { kind: 'book', id: 1, pages: 300 };

describe('a mock of any document', () => {
  test('answers with its examples, below the base path of its server as well', async () => {
    const two = [book, { kind: 'film', id: 2, minutes: 90 }];
    expect(await send('GET', '/branches/7/books')).toMatchObject({ status: 200, body: two });
    expect(await send('GET', '/v4/branches/7/books')).toMatchObject({ status: 200, body: two });
    expect(await send('GET', '/covers/9780306406157.svg')).toMatchObject({
      body: '<svg/>',
      type: 'image/svg+xml',
    });
    expect((await send('GET', '/branches/7/books/latest')).status).toBe(204);
    expect((await send('GET', '/nothing')).status).toBe(404);
    expect(await send('PUT', '/branches/7/books')).toMatchObject({ status: 405 });
  });

  test('obeys `Prefer`, and makes a body from the schema where there is no example', async () => {
    const prefer = (value: string) => send('GET', '/branches/7/books', { headers: { prefer: value } });
    expect(await prefer('example=none')).toMatchObject({ status: 200, body: [] });
    expect(await prefer('code=429')).toEqual({
      ...{ status: 429, body: { title: 'text', status: 400 }, type: 'application/problem+json' },
    });
    expect(await prefer('example=three')).toMatchObject({
      body: { error: 'Prefer: expected an example of two, none, got `three`' },
    });
    expect(await prefer('code=500')).toMatchObject({ status: 400 });
  });

  const refused: [string, Parameters<typeof send>, number, RegExp][] = [
    ['a path parameter of the path item', ['GET', '/branches/0/books'], 400, /^path branch: /],
    ['a part of a segment', ['GET', '/covers/12.svg'], 400, /^path isbn: /],
    ['a header', ['GET', '/branches/1/books', { headers: { 'x-trace': '1' } }], 400, /^header x-trace: /],
    ['a list with commas', ['GET', '/branches/1/books?ids=1,2,3,4'], 400, /^query ids: /],
    ['an item of a list', ['GET', '/branches/1/books?ids=1,x'], 400, /^query ids: \/1: /],
    [
      'an object of a referenced file',
      ['GET', '/branches/1/books?filter[author]=x'],
      400,
      /^query filter: \/author: /,
    ],
    [
      'a property that it does not have',
      ['GET', '/branches/1/books?filter[isbn]=1'],
      400,
      /^query filter: \/isbn: /,
    ],
    ['no body', ['POST', '/branches/1/books'], 400, /no body/],
    [
      'another media type',
      ['POST', '/branches/1/books', { body: book, headers: { 'content-type': 'text/csv' } }],
      415,
      /text\/csv/,
    ],
    [
      'a value that its mapping does not have',
      ['POST', '/branches/1/books', { body: { ...book, kind: 'Book' } }],
      400,
      /^body /,
    ],
    [
      'the branch of another value',
      ['POST', '/branches/1/books', { body: { ...book, kind: 'film' } }],
      400,
      /^body /,
    ],
    [
      'an unevaluated property',
      ['POST', '/branches/1/books', { body: { ...book, minutes: 1 } }],
      400,
      /^body /,
    ],
    [
      'no credentials',
      ['GET', '/branches/1/books', { headers: { authorization: 'Basic eDp5' } }],
      401,
      /credentials/,
    ],
  ];
  test.each(refused)('refuses %s', async (_, args, status, message) => {
    const got = await send(...args);
    expect(got).toMatchObject({ status, body: { error: expect.stringMatching(message) } });
  });

  test('accepts what the document allows', async () => {
    const accepted: Parameters<typeof send>[] = [
      ['GET', '/branches/1/books?ids=1,2&filter[author]=Ada&filter[year]=1843'],
      ['GET', '/branches/1/books?key=k', { headers: { authorization: '' } }],
      ['POST', '/branches/1/books', { body: { ...book, note: null } }],
      ['POST', '/branches/1/books', { body: { kind: 'film', id: 2, minutes: 3 } }],
    ];
    for (const args of accepted) expect((await send(...args)).status).toBeLessThan(300);
  });
});

describe('documents with faults', () => {
  const faultOf = (document: unknown) => {
    const file = join(folder, 'fault.json');
    writeFileSync(file, typeof document === 'string' ? document : JSON.stringify(document));
    return openDocument(file, { cacheFolder: undefined }).then(
      () => 'none',
      (error: Error) => `${error.name}: ${error.message}`,
    );
  };
  const minimal = { openapi: '3.1.0', info: { title: 't', version: '1' } };
  const withSchema = (schema: unknown) => ({
    ...minimal,
    paths: {
      '/a': {
        get: { responses: { 200: { description: 'd', content: { 'application/json': { schema } } } } },
      },
    },
  });

  test('are refused with the place of the fault', async () => {
    expect(await faultOf({ openapi: '3.0.3', info: minimal.info, paths: {} })).toContain(
      'got `openapi: 3.0.3`',
    );
    expect(
      await faultOf({ ...minimal, paths: { '/a': { get: { parameters: [{ name: 'x', in: 'body' }] } } } }),
    ).toMatch(/#\/paths\/~1a\/get\/parameters\/0/);
    expect(await faultOf(withSchema({ type: 'string', pattern: '(' }))).toMatch(
      /the schema #\/paths\/~1a\/get\/responses\/200\/content\/application~1json\/schema cannot be compiled: .*\//,
    );
    expect(await faultOf(withSchema({ $ref: '#/components/schemas/Absent' }))).toContain('Absent');
    expect(await faultOf(withSchema({ $ref: './absent.yaml' }))).toContain('absent.yaml');
    expect(await faultOf(withSchema({ $ref: 'http://127.0.0.1:1/a.json' }))).toMatch(/^UnmeasurableError/);
    expect(await faultOf('openapi: [')).toMatch(/^UnmeasurableError/);
  });
});

describe('compiled validators', () => {
  const cached = () => cachedCompilation(opened.document, folder, () => compiled).isFromCache;
  const compiled = { parameters: { code: '', names: {} }, bodies: { code: '', names: {} } };

  test('are kept for the next start, unless others could have changed them', async () => {
    expect(opened.isFromCache).toBe(false);
    const again = await openDocument(library, { cacheFolder: folder });
    expect(again.isFromCache).toBe(true);
    const [pointer] = again.bodies.keys();
    for (const body of [[book], [{ ...book, pages: 0 }]]) {
      expect(again.bodies.get(pointer!)!(body)).toBe(opened.bodies.get(pointer!)!(body));
    }
    const place = join(folder, 'documents');
    const file = join(place, readdirSync(place)[0]!);
    chmodSync(file, 0o666);
    expect(cached()).toBe(false);
    expect(cached()).toBe(true);
    chmodSync(place, 0o777);
    expect(cached()).toBe(false);
    chmodSync(place, 0o700);
    writeFileSync(file, '{');
    expect(cached()).toBe(false);
  });
});

describe('custos verify with another document', () => {
  // Compiles a document of 90 operations.
  const long = test.runIf(process.env.TEST_LONG === '1');
  long('finds nothing in the control plane of a sandbox by its own document', async () => {
    await using sandbox = await startSandbox();
    const control = await openDocument(controlPlane, { cacheFolder: undefined });
    const verifier = await startVerifier({
      ...{ host: '127.0.0.1', port: 0, sandbox: undefined, judge: judgeDocument(control) },
      target: { url: new URL(sandbox.baseUrl), ca: sandbox.caPem, host: undefined },
    });
    const proxied = new Agent({ connect: { ca: readFileSync(verifier.caFile, 'utf8') } });
    const call = async (method: 'GET' | 'POST' | 'PUT', path: string, body?: unknown) => {
      const answer = await proxied.request({
        ...{
          origin: verifier.url,
          path: `/_sandbox${path}`,
          method,
          body: body === undefined ? null : JSON.stringify(body),
        },
        headers: body === undefined ? {} : { 'content-type': 'application/json' },
      });
      await answer.body.dump();
      return answer.statusCode;
    };
    try {
      expect(await call('GET', '/clock')).toBe(200);
      expect(await call('PUT', '/clock', { advance_ms: 1000 })).toBeLessThan(300);
      expect(await call('GET', '/events?limit=5&types=wallet.archived')).toBeLessThan(500);
      expect(await call('GET', '/requests?limit=x')).toBe(400);
      expect(await call('GET', '/faults')).toBe(200);
      const { findings, judged } = verifier.verification();
      expect(findings.filter(({ severity }) => severity === 'error')).toEqual([]);
      expect(judged).toBe(5);
    } finally {
      await verifier.close();
      await proxied.destroy();
    }
  });

  test('finds what a server does against it', () => {
    const { judge, operationOf } = judgeDocument(opened);
    const exchange = (more: object) => ({
      ...{ method: 'GET', target: '/v4/branches/1/books', requestHeaders: {}, requestBody: Buffer.alloc(0) },
      ...{
        status: 200,
        responseHeaders: { 'content-type': 'application/json' },
        responseBody: Buffer.from('[]'),
      },
      ...more,
    });
    const found = (more: object) =>
      judge(exchange(more)).map(({ rule, place, message }) => `${rule} ${place}: ${message}`);
    expect(operationOf({ method: 'GET', target: '/covers/1.svg' })).toBe('GET /covers/{isbn}.{format}');
    expect(found({})).toEqual([]);
    expect(found({ status: 503 })).toEqual(['status-undocumented listBooks 503: expected 200, 4XX, got 503']);
    expect(found({ responseBody: Buffer.from('[{"kind":"book","id":1}]') })).toEqual([
      'response-invalid listBooks 200: /0/pages: is required',
    ]);
    expect(found({ target: '/branches/x/books' })).toEqual([
      expect.stringMatching(/^request-invalid listBooks 200: path branch: /),
    ]);
    expect(found({ responseHeaders: { 'content-type': 'text/html' } })).toEqual([
      'response-invalid listBooks 200: content-type: expected application/json, got `text/html`',
    ]);
    expect(found({ target: '/admin' })).toEqual([
      'undocumented-path GET /admin: expected 404 or 405 for what is no operation, got 200',
    ]);
  });
});

test.runIf(process.env.TEST_LONG === '1')(
  'custos mock --document runs from the bundle',
  { timeout: 120_000 },
  async () => {
    const ready = join(folder, 'ready.json');
    const custos = await startCustos(['mock', '--document', library, '--port', '0', '--ready-file', ready], {
      env: { XDG_CACHE_HOME: folder },
    });
    await waitFor(() => existsSync(ready) || custos.process.exitCode !== null);
    const { base_url: origin, ca_file: ca } = JSON.parse(readFileSync(ready, 'utf8'));
    const client = new Agent({ connect: { ca: readFileSync(ca, 'utf8') } });
    const { statusCode } = await client.request({ origin, path: '/branches/1/books?key=k', method: 'GET' });
    await client.destroy();
    expect(statusCode).toBe(200);
    expect(await custos.stop()).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('A mock of City library 4.2, with 4 operations, is ready at '),
    });
  },
);
