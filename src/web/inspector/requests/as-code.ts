import type { RecordedExchange } from '../../../sandbox/generated/schemas.ts';
import { sampleLanguages } from '../../docs/code-samples.ts';
import type { SampleRequest } from '../../docs/sample-request.ts';

type Sent = Pick<RecordedExchange, 'method' | 'path' | 'request'>;

const REMOVED = '[removed]';
const CA_FILE = '.custos/ca.pem';
/** Headers that curl sets itself. */
const ownHeaders =
  /^(host|connection|content-length|accept|accept-encoding|accept-language|user-agent|transfer-encoding|expect|sec-.*|keep-alive)$/i;

/**
 * Returns a curl command that repeats a request. Redacted values become shell variables: the credentials `$APP_ID`
 * and `$APP_SECRET`, and other values under the name of their header.
 */
export function curlCommand({ method, path, request }: Sent, baseUrl: string): string {
  const lines = [`curl --cacert ${CA_FILE} -X ${method} ${quote(baseUrl + path)}`];
  for (const { name, value } of headersToSend(request.headers)) {
    if (value !== REMOVED) lines.push(`-H ${quote(`${name}: ${value}`)}`);
    else if (name.toLowerCase() === 'authorization') lines.push('-u "$APP_ID:$APP_SECRET"');
    else lines.push(`-H "${name}: $${variableOf(name)}"`);
  }
  if (request.body !== null) lines.push(`--data ${quote(textOf(request.body))}`);
  return lines.join(' \\\n  ');
}

/** Returns the code of a vitest test that sends a request and expects the recorded status and error code. */
export function testOf(
  exchange: Sent & Pick<RecordedExchange, 'operation' | 'status' | 'code'>,
  baseUrl: string,
): string {
  const { method, path, request, operation, status, code } = exchange;
  const headers = headersToSend(request.headers).map(({ name, value }) => {
    const text = value === REMOVED ? valueInTest(name) : JSON.stringify(value);
    return `      ${JSON.stringify(name)}: ${text},`;
  });
  const body =
    request.body === null
      ? []
      : [
          `    body: ${typeof request.body === 'string' ? JSON.stringify(request.body) : stringified(request.body)},`,
        ];
  return [
    "import { env } from 'node:process';",
    "import { expect, test } from 'vitest';",
    '',
    `test('${operation ?? `${method} ${path.split('?')[0]}`} answers ${status}', async () => {`,
    `  const response = await fetch(${JSON.stringify(baseUrl + path)}, {`,
    `    method: ${JSON.stringify(method)},`,
    '    headers: {',
    ...headers,
    '    },',
    ...body,
    '  });',
    `  expect(response.status).toBe(${status});`,
    ...(code === null
      ? []
      : [`  expect(await response.json()).toMatchObject({ code: ${JSON.stringify(code)} });`]),
    '});',
    '',
  ].join('\n');
}

/**
 * Returns code that repeats a request, by the name of its language. Only the curl command repeats it exactly as it
 * was sent.
 */
export function codeOf(exchange: RecordedExchange, baseUrl: string): readonly (readonly [string, string])[] {
  const request = sampleOf(exchange, baseUrl);
  return [
    ['curl', curlCommand(exchange, baseUrl)],
    ...sampleLanguages
      .filter(({ id }) => id !== 'sh')
      .map(({ title, write }) => [title, write(request)] as const),
    ['Test', testOf(exchange, baseUrl)],
  ];
}

/** Headers that the samples set themselves, so they are not copied from the request. */
const written = /^(authorization|content-type|.*-app-id|.*-authorization-signature)$/i;

/**
 * Converts a recorded request for the code samples. A signature is replaced by the file of a private key, with which
 * the code signs again.
 */
function sampleOf(exchange: RecordedExchange, baseUrl: string): SampleRequest {
  const { method, path, request, user_id: user, signatures_sent: signatures } = exchange;
  const others = headersToSend(request.headers).filter(({ name }) => !written.test(name));
  const app = request.headers.find(({ name }) => /-app-id$/i.test(name));
  const hasCredentials = request.headers.some(({ name }) => name.toLowerCase() === 'authorization');
  return {
    ...{ method, url: baseUrl + path, value: request.body ?? undefined, isForm: false },
    headers: Object.fromEntries(others.map(({ name, value }) => [name, value])),
    prefix: app === undefined ? 'service' : app.name.toLowerCase().slice(0, -'-app-id'.length),
    appId: app?.value ?? '',
    appSecret: undefined,
    credentials: !hasCredentials ? 'none' : user === null ? 'secret' : 'user',
    keyFiles: signatures === 0 ? [] : ['owner.pem'],
    caFile: CA_FILE,
  };
}

function headersToSend(headers: RecordedExchange['request']['headers']) {
  return headers.filter(({ name }) => !ownHeaders.test(name));
}

function valueInTest(name: string): string {
  return name.toLowerCase() === 'authorization'
    ? "'Basic ' + btoa(env.APP_ID + ':' + env.APP_SECRET)"
    : `env.${variableOf(name)} ?? ''`;
}

function stringified(body: unknown): string {
  return `JSON.stringify(${JSON.stringify(body, null, 2).replaceAll('\n', '\n    ')})`;
}

function variableOf(header: string): string {
  return header.toUpperCase().replaceAll('-', '_');
}

function textOf(body: unknown): string {
  return typeof body === 'string' ? body : JSON.stringify(body);
}

/** Quotes a string as one word for a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
