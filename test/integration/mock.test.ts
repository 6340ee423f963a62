import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startMock } from '../../src/compose/mock.ts';
import { type RunningVerifier, startVerifier } from '../../src/compose/verify.ts';
import { readDocument } from '../ledger/documented.ts';
import { pauseRecording } from '../ledger/record-answers.ts';
import { createJudge } from '../support/document-judge.ts';
import type { OpenApiDocument } from '../support/sandbox.ts';

interface Example {
  value: unknown;
}

interface Schema {
  $ref?: string;
  enum?: unknown[];
  const?: unknown;
}

interface Parameter {
  $ref?: string;
  schema?: Schema;
  name: string;
  in: string;
  required?: boolean;
  example?: unknown;
  examples?: Record<string, Example>;
}

interface Media {
  content?: Record<string, { examples: Record<string, Example> }>;
}

interface Operation {
  id: string;
  method: string;
  path: string;
  parameters: Parameter[];
  requestBody?: Media;
  responses: Record<string, Media>;
}

const documentText = readFileSync(join(import.meta.dirname, '..', '..', 'openapi', 'openapi.json'), 'utf8');
const document = JSON.parse(documentText) as {
  paths: Record<string, Record<string, Omit<Operation, 'id'> & { operationId: string }>>;
  components: { parameters: Record<string, Parameter>; schemas: Record<string, Schema> };
};
const operations: Operation[] = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({
    ...operation,
    id: operation.operationId,
    method: method.toUpperCase(),
    path,
    parameters: (operation.parameters ?? []).map((parameter: Parameter) =>
      parameter.$ref === undefined
        ? parameter
        : document.components.parameters[parameter.$ref.split('/').at(-1) ?? '']!,
    ),
  })),
);
const judge = createJudge(document as unknown as OpenApiDocument);

// `custos verify` is in front of the mock, and judges what it answers, too.
let verifier: RunningVerifier;
let mock: Awaited<ReturnType<typeof startMock>>;
let agent: Agent;

// The mock answers with the document's examples and runs no operation.
pauseRecording();

beforeAll(async () => {
  mock = await startMock({ port: 0, logLevel: 'silent' });
  verifier = await startVerifier({
    ...{ host: '127.0.0.1', port: 0, document: readDocument(), sandbox: undefined },
    target: { url: new URL(mock.baseUrl), ca: mock.caPem, host: undefined },
  });
  agent = new Agent({ connect: { ca: [mock.caPem, readFileSync(verifier.caFile, 'utf8')] } });
});

afterAll(async () => {
  await agent.destroy();
  await verifier.close();
  await mock.close();
});

function examplesOf(media: Media | undefined): Record<string, Example> {
  // JSON, or the only type of a file.
  const [first] = Object.values(media?.content ?? {});
  return (media?.content?.['application/json'] ?? first)?.examples ?? {};
}

/** A value from the example of the document, or else from its schema. */
function exampleOf({ example, examples, schema = {} }: Parameter): unknown {
  const listed =
    schema.$ref === undefined ? schema : document.components.schemas[schema.$ref.split('/').at(-1)!]!;
  return example ?? Object.values(examples ?? {})[0]?.value ?? listed.enum?.[0] ?? listed.const;
}

/** The operation's path with the document's example values, query included. */
function targetOf({ path, parameters }: Operation): string {
  const filled = path.replaceAll(/\{([^}]+)\}/g, (_, name: string) =>
    encodeURIComponent(String(exampleOf(parameters.find((parameter) => parameter.name === name)!))),
  );
  const query = new URLSearchParams();
  for (const parameter of parameters.filter((each) => each.in === 'query' && each.required)) {
    for (const value of [exampleOf(parameter)].flat()) query.append(parameter.name, String(value));
  }
  return query.size === 0 ? filled : `${filled}?${query}`;
}

interface CallOptions {
  body?: unknown;
  headers?: Record<string, string>;
}

async function call(operation: Operation, { body, headers }: CallOptions = {}) {
  const sent = body ?? Object.values(examplesOf(operation.requestBody))[0]?.value;
  const answer = await agent.request({
    origin: verifier.url,
    path: targetOf(operation),
    method: operation.method as 'GET',
    headers: {
      authorization: `Basic ${Buffer.from('any:thing').toString('base64')}`,
      'service-app-id': 'any',
      ...(sent === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    body: sent === undefined ? null : JSON.stringify(sent),
  });
  const text = await answer.body.text();
  const contentType = answer.headers['content-type'] as string | undefined;
  const isFile = contentType !== undefined && !contentType.startsWith('application/json');
  const parsed: unknown = isFile ? text : text === '' ? undefined : JSON.parse(text);
  judge({
    operationId: operation.id,
    status: answer.statusCode,
    contentType,
    body: parsed,
  });
  return { status: answer.statusCode, headers: answer.headers, body: parsed };
}

function find(id: string): Operation {
  return operations.find((operation) => operation.id === id)!;
}

test('the document has operations to answer', () => {
  expect(operations.length).toBeGreaterThanOrEqual(160);
});

test.each(operations.map((operation) => [operation.id, operation] as const))(
  '%s answers its documented example',
  async (_id, operation) => {
    const [successStatus = ''] = Object.keys(operation.responses).filter((status) => Number(status) < 300);
    const documented = Object.values(examplesOf(operation.responses[successStatus])).map(
      ({ value }) => value,
    );
    const { status, body, headers } = await call(operation);
    expect(status).toBe(Number(successStatus));
    expect(documented.length === 0 ? [undefined] : documented).toContainEqual(body);
    expect(headers).not.toHaveProperty('preference-applied');
  },
);

test.each(Object.entries(examplesOf(find('walletRpc').requestBody)))(
  'walletRpc answers %s with the example of that name',
  async (name, { value }) => {
    const { body } = await call(find('walletRpc'), { body: value });
    expect(body).toEqual(examplesOf(find('walletRpc').responses['200'])[name]?.value);
  },
);

test('the example can be selected by any word of the body', async () => {
  const { body } = await call(find('createWallet'), { body: { chain_type: 'solana' } });
  expect(body).toEqual(examplesOf(find('createWallet').responses['200']).solana?.value);
});

describe('Prefer', () => {
  const getWallet = find('getWallet');

  test('code=404 returns the documented error', async () => {
    const { status, body, headers } = await call(getWallet, { headers: { prefer: 'code=404' } });
    expect({ status, body }).toEqual({
      status: 404,
      body: examplesOf(getWallet.responses['404']).not_found?.value,
    });
    expect(headers['preference-applied']).toBe('code=404');
  });

  test('every documented status of every operation can be requested', async () => {
    for (const operation of operations) {
      for (const code of Object.keys(operation.responses)) {
        const { status } = await call(operation, { headers: { prefer: `code=${code}` } });
        expect(`${operation.id} ${status}`).toBe(`${operation.id} ${code}`);
      }
    }
    const { judged, findings } = verifier.verification();
    expect(findings).toEqual([]);
    expect(judged).toBeGreaterThan(1_000);
  });

  test('example=name selects the example and its status', async () => {
    const success = await call(find('listWallets'), { headers: { prefer: 'example=last_page' } });
    expect(success.status).toBe(200);
    expect(success.body).toEqual(examplesOf(find('listWallets').responses['200']).last_page?.value);
    expect(success.headers['preference-applied']).toBe('example=last_page');
    const refused = await call(find('walletRpc'), { headers: { prefer: 'example=policy_violation' } });
    expect(refused).toMatchObject({ status: 400, body: { code: 'policy_violation' } });
  });

  test('code and example go together, in one header, quoted or not', async () => {
    const headers = { prefer: 'respond-async, code="401"; example=missing_or_invalid_token' };
    const { status, body, headers: answered } = await call(getWallet, { headers });
    expect({ status, body }).toMatchObject({ status: 401, body: { code: 'missing_or_invalid_token' } });
    expect(answered['preference-applied']).toBe('code=401, example=missing_or_invalid_token');
  });

  test('an undocumented code or example is refused with the documented ones', async () => {
    const code = await call(getWallet, { headers: { prefer: 'code=418' } });
    const codes = Object.keys(getWallet.responses);
    expect(code.status).toBe(400);
    expect(code.body).toEqual({
      error: `Prefer: expected a documented code (${codes.join(', ')}), got \`418\``,
      code: 'invalid_data',
      data: { codes },
    });
    const example = await call(getWallet, { headers: { prefer: 'code=404, example=gone' } });
    expect(example.body).toEqual({
      error: 'Prefer: expected a documented example (not_found), got `gone`',
      code: 'invalid_data',
      data: { examples: ['not_found'] },
    });
  });
});

describe('requests are validated', () => {
  test('an unknown property, an unknown route and a wrong method', async () => {
    const body = { chain_type: 'ethereum', colour: 'blue' };
    const unknown = await call(find('createWallet'), { body });
    expect(unknown).toMatchObject({ status: 400, body: { code: 'invalid_data' } });
    expect(JSON.stringify(unknown.body)).toContain('/colour');
  });

  test('any credentials are accepted, but required', async () => {
    const without = await agent.request({ origin: mock.baseUrl, path: '/v1/wallets', method: 'GET' });
    expect(without.statusCode).toBe(401);
    await without.body.dump();
  });
});

describe('web pages', () => {
  const send = async (path: string, headers: Record<string, string>, method: 'GET' | 'OPTIONS' = 'GET') => {
    const answer = await agent.request({ origin: mock.baseUrl, path, method, headers });
    await answer.body.dump();
    return { status: answer.statusCode, allowed: answer.headers['access-control-allow-origin'] };
  };
  const origin = 'http://localhost:3000';
  const user = { authorization: 'Bearer token', 'service-app-id': 'any' };

  test('of this machine may read what needs no app secret, as from a sandbox', async () => {
    const preflight = { origin, 'access-control-request-method': 'GET' };
    expect(await send('/v1/intents', preflight, 'OPTIONS')).toEqual({ status: 204, allowed: origin });
    expect(await send('/v1/intents', { origin, ...user })).toEqual({ status: 200, allowed: origin });
    const app = { origin, authorization: 'Basic YTpi', 'service-app-id': 'any' };
    expect(await send('/v1/intents', app)).toEqual({ status: 200, allowed: undefined });
  });

  test('web pages of other sites may not', async () => {
    const foreign = { origin: 'https://site.example', ...user };
    expect(await send('/v1/intents', foreign)).toEqual({ status: 403, allowed: undefined });
  });
});

test('refusals have the headers that those of a sandbox have', async () => {
  const headersOf = async (code: number) =>
    (await call(find('getWallet'), { headers: { prefer: `code=${code}` } })).headers;
  expect(await headersOf(401)).toMatchObject({ 'www-authenticate': 'Basic realm="custos", charset="UTF-8"' });
  expect(await headersOf(429)).toMatchObject({ 'retry-after': '1' });
});
