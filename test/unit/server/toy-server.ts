import { createHash } from 'node:crypto';
import { Agent, type RequestListener } from 'node:http';
import type { Readable } from 'node:stream';
import { Ajv2020 } from 'ajv/dist/2020.js';
import supertest from 'supertest';
import { definition } from '../../../src/generated/definition.ts';
import type { ValidateFunction } from '../../../src/generated/validate-function.ts';
import type { AppCredentials, AppDirectory } from '../../../src/ports/requests.ts';
import type { Clock, Log } from '../../../src/ports/runtime.ts';
import { createAuthenticate } from '../../../src/server/authenticate.ts';
import { createPipeline, type PipelineOptions } from '../../../src/server/pipeline.ts';
import type { Answer, OperationHandlers, RequestState } from '../../../src/server/request-state.ts';
import type { Operation, RequestValidators } from '../../../src/server/route-index.ts';
import { startServer } from '../../../src/server/server.ts';

/** A toy shop with five operations that use every feature of the pipeline. */
export const toyOperations: readonly Operation[] = [
  operation('listToys', 'GET', '/v1/toys'),
  operation('createToy', 'POST', '/v1/toys', { hasBody: true, bodyRequired: true, idempotent: true }),
  operation('getToy', 'GET', '/v1/toys/{toy_id}'),
  operation('deleteToy', 'DELETE', '/v1/toys/{toy_id}', { successStatus: 204 }),
  operation('getCatalogue', 'GET', '/v1/catalogue.json', { security: 'none' }),
  operation('playWithToy', 'POST', '/v1/toys/{toy_id}/play', {
    hasBody: true,
    bodyRequired: false,
    security: 'app-or-user',
  }),
];

function operation(id: string, method: string, path: string, more: Partial<Operation> = {}): Operation {
  return {
    id,
    method,
    path,
    successStatus: 200,
    hasBody: false,
    bodyRequired: false,
    idempotent: false,
    security: 'app',
    ...more,
  };
}

const schemes = {
  none: [],
  app: ['appCredentials'],
  'app-or-origin': ['appCredentials', 'appOrigin'],
  'app-or-user': ['appCredentials', 'userToken'],
  'oauth-client': ['appCredentials', 'oauthClient'],
} as const;

/** The OpenAPI document of these operations. */
export function definitionOf(operations: readonly Operation[]): PipelineOptions['definition'] {
  const paths: Record<string, Record<string, object>> = {};
  for (const { id, method, path, security } of operations) {
    const requirements = schemes[security].map((scheme) => ({ [scheme]: [] }));
    paths[path] = { ...paths[path], [method.toLowerCase()]: { operationId: id, security: requirements } };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'toys', version: '1' },
    paths,
    components: definition.components,
  };
}

/** By the types that they coerce: each compiles the schema of schemas once, which takes longer than all toys. */
const compilers = new Map<boolean | 'array', Ajv2020>();

/** Compiles a schema the way the generator does. */
export function compile(schema: object, coerceTypes: boolean | 'array' = false): ValidateFunction {
  const ajv = compilers.get(coerceTypes) ?? new Ajv2020({ coerceTypes, discriminator: true, strict: false });
  compilers.set(coerceTypes, ajv);
  return ajv.compile(schema) as ValidateFunction;
}

const anyParameters = compile({ type: 'object' });
const toyBody = compile({
  type: 'object',
  properties: { name: { type: 'string', minLength: 1 }, colour: { enum: ['red', 'blue'] }, note: {} },
  required: ['name'],
  additionalProperties: false,
});

export const toyValidators: Record<string, RequestValidators> = {
  listToys: {
    params: compile(
      {
        properties: {
          query: {
            properties: {
              limit: { type: 'integer', maximum: 100 },
              tags: { type: 'array', items: { type: 'string' } },
            },
          },
        },
      },
      'array',
    ),
  },
  createToy: { params: anyParameters, body: toyBody },
  getToy: { params: compile({ properties: { path: { properties: { toy_id: { maxLength: 40 } } } } }) },
  deleteToy: { params: anyParameters },
  getCatalogue: { params: anyParameters },
  playWithToy: { params: anyParameters, body: compile({ type: 'object' }) },
};

export const toyApp = {
  id: 'capp0000000000000000000001',
  name: 'Toys',
  secret: 'toy-secret',
  origin: 'https://toys.example',
};

export const appHeaders = {
  authorization: `Basic ${Buffer.from(`${toyApp.id}:${toyApp.secret}`).toString('base64')}`,
  'service-app-id': toyApp.id,
};

export interface ToyDirectory extends AppDirectory {
  records: AppCredentials[];
  lookups: number;
  changes: number;
}

/** Apps in memory; `lookups` counts the look-ups. */
export function toyDirectory(): ToyDirectory {
  const directory: ToyDirectory = {
    records: [{ id: toyApp.id, secretHashes: [sha256(toyApp.secret)], allowedOrigins: [toyApp.origin] }],
    lookups: 0,
    changes: 0,
    generation: () => directory.changes,
    find: async (id) => {
      directory.lookups += 1;
      return directory.records.find((record) => record.id === id);
    },
  };
  return directory;
}

export function sha256(text: string): Uint8Array {
  return createHash('sha256').update(text, 'utf8').digest();
}

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly fields: Record<string, unknown>;
  readonly message: string;
}

/** A log that keeps its lines. */
export function keptLog(): Log & { readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const at = (level: LogLine['level']) => (fields: object, message: string) => {
    lines.push({ level, fields: fields as Record<string, unknown>, message });
  };
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

export const noonMs = Date.UTC(2026, 0, 1, 12);

/** A frozen clock that tests can set. */
export function stoppedClock(): Clock & { nowMs: number } {
  const clock = { nowMs: noonMs, now: () => clock.nowMs };
  return clock;
}

interface ToyAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: unknown;
}

export interface ToyServer extends AsyncDisposable {
  readonly url: string;
  readonly log: ReturnType<typeof keptLog>;
  readonly clock: ReturnType<typeof stoppedClock>;
  readonly directory: ToyDirectory;
  fetch(
    method: string,
    path: string,
    options?: { headers?: Record<string, string>; body?: string },
  ): Promise<ToyAnswer>;
}

/** What every operation of a toy server does. */
export type Run = (state: RequestState) => Promise<Answer>;

/** The same handler for each of these operations. */
export function handlersOf(operations: readonly Pick<Operation, 'id'>[], run: Run): OperationHandlers {
  return Object.fromEntries(
    operations.map(({ id }) => [id, (_context: unknown, state: RequestState) => run(state)]),
  );
}

/** The default response of toy operations: the request. */
export const echo: Run = async ({ route, query, body, app, userId }: RequestState) => ({
  status: 200,
  body: { operation: route?.operation.id, path: { ...route?.params }, query, body, app, userId },
});

/** Serves the toy contract over plain HTTP on a free port. */
export async function startToyServer({
  run = echo,
  operations = toyOperations,
  ...options
}: Partial<PipelineOptions> & { readonly run?: Run } = {}): Promise<ToyServer> {
  const log = keptLog();
  const clock = stoppedClock();
  const directory = toyDirectory();
  let requests = 0;
  const pipeline = await createPipeline({
    definition: definitionOf(operations),
    operations,
    validators: toyValidators,
    handlers: handlersOf(operations, run),
    transport: { plainHttp: true, trustedProxies: [] },
    authenticate: createAuthenticate({ apps: directory, clock }),
    publicBaseUrls: () => [],
    isHostSigned: true,
    clock,
    log,
    newRequestId: () => `request-${++requests}`,
    ...options,
  });
  const server = await listen((request, response) => void pipeline(request, response), log);
  // Like clients do; by default, supertest closes the connection.
  const agent = new Agent({ keepAlive: true });
  return {
    ...server,
    log,
    clock,
    directory,
    async fetch(method, path, { headers = appHeaders, body } = {}) {
      const sending = supertest(server.url)[method.toLowerCase() as 'get'](path).agent(agent).set(headers);
      const answer = await sending.buffer(true).parse(readText).send(body);
      const text = answer.body as string;
      return {
        status: answer.status,
        headers: new Headers(answer.headers as Record<string, string>),
        text,
        body: text === '' ? undefined : JSON.parse(text),
      };
    },
    async [Symbol.asyncDispose]() {
      agent.destroy();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** The raw body of a response. */
function readText(response: supertest.Response, done: (error: Error | null, text: string) => void): void {
  const chunks: Buffer[] = [];
  const stream = response as unknown as Readable;
  stream.on('data', (chunk: string | Buffer) => chunks.push(Buffer.from(chunk)));
  stream.on('end', () => done(null, Buffer.concat(chunks).toString('utf8')));
}

/** Serves `handler` over plain HTTP on a free port. */
async function listen(
  handler: RequestListener,
  log: Log = keptLog(),
): Promise<{ url: string; port: number } & AsyncDisposable> {
  const server = await startServer({
    handler,
    tls: undefined,
    host: '127.0.0.1',
    port: 0,
    log,
    newRequestId: () => 'request-of-server',
    graceMs: 500,
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    port: server.port,
    [Symbol.asyncDispose]: () => server.close(),
  };
}
