import { describe, expect, test } from 'vitest';
import document from '../../../openapi/openapi.json' with { type: 'json' };
import { secretProperties } from '../../../src/generated/secrets.ts';
import type { AnsweredRequest } from '../../../src/ports/requests.ts';
import { redactionFor } from '../../../src/sandbox/requests/redact.ts';

const redaction = redactionFor(secretProperties, 'service');

function message(part: Partial<AnsweredRequest> & { readonly body?: string }): AnsweredRequest {
  return {
    status: 200,
    rawHeaders: [],
    responseHeaders: [],
    rawBody: Buffer.from(part.body ?? ''),
    ...part,
  } as AnsweredRequest;
}

/** The strings in an example that a schema marks as secret, found by walking both side by side. */
function secretsIn(schema: Schema, value: unknown): string[] {
  const target = schema.$ref === undefined ? schema : schemas[schema.$ref.split('/').at(-1)!]!;
  if (schema['x-secret'] === true) return stringsIn(value);
  const branches = [...(target.oneOf ?? []), ...(target.anyOf ?? [])];
  const inner = branches.flatMap((branch) => secretsIn(branch, value));
  if (Array.isArray(value))
    return [...inner, ...value.flatMap((item) => secretsIn(target.items ?? {}, item))];
  if (typeof value !== 'object' || value === null) return inner;
  const members = Object.entries(value).flatMap(([name, each]) =>
    secretsIn(target.properties?.[name] ?? {}, each),
  );
  return [...inner, ...members];
}

function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : [];
}

interface Schema {
  readonly $ref?: string;
  readonly 'x-secret'?: boolean;
  readonly oneOf?: Schema[];
  readonly anyOf?: Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
}

interface Content {
  readonly content?: {
    readonly 'application/json'?: { schema: Schema; examples?: Record<string, { value?: unknown }> };
  };
}

const schemas = document.components.schemas as unknown as Readonly<Record<string, Schema>>;
const operations = Object.values(document.paths).flatMap((methods) =>
  Object.values(
    methods as Record<
      string,
      { operationId: string; requestBody?: Content; responses: Record<string, Content> }
    >,
  ),
);

const examples = operations.flatMap(({ operationId: operation, requestBody, responses }) => {
  const success = Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1];
  return (['request', 'response'] as const).flatMap((part) => {
    const json = (part === 'request' ? requestBody : success)?.content?.['application/json'];
    return Object.values(json?.examples ?? {}).map(({ value }) => ({
      ...{ operation, part, value },
      secrets: json === undefined ? [] : secretsIn(json.schema, value),
    }));
  });
});

describe('what the contract marks as secret', () => {
  const secret = examples.filter(({ secrets }) => secrets.length > 0);

  test('examples contain more than twenty secrets', () => {
    expect(secret.length).toBeGreaterThan(20);
  });

  test.each(secret)('$operation: the $part is shown without it', ({ operation, part, value, secrets }) => {
    const text = JSON.stringify(value);
    const shown =
      part === 'request'
        ? redaction.requestBody(message({ operation, body: text }))
        : redaction.responseBody(message({ operation, responseText: text }));
    for (const each of secrets) expect(JSON.stringify(shown)).not.toContain(JSON.stringify(each));
    expect(JSON.stringify(shown)).toContain('[removed]');
  });
});

test('a body without secrets is shown as it is', () => {
  for (const { operation, part, value, secrets } of examples) {
    if (secrets.length > 0 || part !== 'request') continue;
    expect(redaction.requestBody(message({ operation, body: JSON.stringify(value) }))).toEqual(value);
  }
});

test('a body sent to an unknown path is shown without anything that some operation calls a secret', () => {
  const body = JSON.stringify({ ciphertext: 'c', client_secret: 's', chain_type: 'ethereum' });
  expect(redaction.requestBody(message({ operation: undefined, body }))).toEqual({
    ciphertext: '[removed]',
    client_secret: '[removed]',
    chain_type: 'ethereum',
  });
});

test('a body that cannot be parsed is shown only where it cannot contain a secret', () => {
  expect(
    redaction.requestBody(message({ operation: 'submitWalletImport', body: '{"ciphertext":"c"' })),
  ).toBeNull();
  expect(redaction.requestBody(message({ operation: 'createWallet', body: '{"chain_type"' }))).toBe(
    '{"chain_type"',
  );
  const deep = '['.repeat(200_000);
  expect(redaction.requestBody(message({ operation: 'submitWalletImport', body: deep }))).toBeNull();
});

test('forms are parsed', () => {
  const form = 'grant_type=refresh_token&refresh_token=r1&client_secret=s';
  expect(redaction.requestBody(message({ operation: 'exchangeOauthToken', body: form }))).toEqual({
    grant_type: 'refresh_token',
    refresh_token: '[removed]',
    client_secret: '[removed]',
  });
});

test('the code of a refusal is no secret, and branded names are recognized', () => {
  const refused = message({
    operation: 'authenticatePasswordless',
    status: 400,
    responseText: '{"code":"invalid_data"}',
  });
  expect(redaction.responseBody(refused)).toEqual({ code: 'invalid_data' });
  const branded = message({
    operation: 'authenticatePasswordless',
    responseText: '{"acme_access_token":"t"}',
  });
  expect(redactionFor(secretProperties, 'acme').responseBody(branded)).toEqual({
    acme_access_token: '[removed]',
  });
});
