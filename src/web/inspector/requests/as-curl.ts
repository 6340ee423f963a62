import type { RecordedExchange } from '../../../sandbox/generated/schemas.ts';

type Sent = Pick<RecordedExchange, 'method' | 'path' | 'request'>;

const REMOVED = '[removed]';
/** Headers that the client sets itself. */
const ownHeaders =
  /^(host|connection|content-length|accept|accept-encoding|accept-language|user-agent|transfer-encoding|expect|sec-.*|keep-alive)$/i;

/**
 * A command that repeats a request. Redacted values become shell variables: the credentials `$APP_ID` and
 * `$APP_SECRET`, and other values under the name of their header.
 */
export function curlCommand({ method, path, request }: Sent, baseUrl: string): string {
  const lines = [`curl --cacert .custos/ca.pem -X ${method} ${quote(baseUrl + path)}`];
  for (const { name, value } of headersToSend(request.headers)) {
    if (value !== REMOVED) lines.push(`-H ${quote(`${name}: ${value}`)}`);
    else if (name.toLowerCase() === 'authorization') lines.push('-u "$APP_ID:$APP_SECRET"');
    else lines.push(`-H "${name}: $${variableOf(name)}"`);
  }
  if (request.body !== null) lines.push(`--data ${quote(textOf(request.body))}`);
  return lines.join(' \\\n  ');
}

/** The code of a vitest test that sends a request and expects the recorded status and error code. */
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

/** Quotes a text as one word for a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
