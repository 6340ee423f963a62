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

/** The code in TypeScript that repeats a request with `fetch`. */
function typescriptOf({ method, path, request }: Sent, baseUrl: string): string {
  const headers = headersToSend(request.headers).map(({ name, value }) => {
    const text = value === REMOVED ? valueInTest(name) : JSON.stringify(value);
    return `    ${JSON.stringify(name)}: ${text},`;
  });
  return [
    "import { env } from 'node:process';",
    '',
    '// Node trusts the certificate of the sandbox with NODE_EXTRA_CA_CERTS=.custos/ca.pem',
    `const response = await fetch(${JSON.stringify(baseUrl + path)}, {`,
    `  method: ${JSON.stringify(method)},`,
    '  headers: {',
    ...headers,
    '  },',
    ...(request.body === null ? [] : [`  body: ${bodyInScript(request.body)},`]),
    '});',
    'console.log(response.status, await response.json());',
  ].join('\n');
}

/** The code in Python that repeats a request with the standard library. */
function pythonOf({ method, path, request }: Sent, baseUrl: string): string {
  const headers = headersToSend(request.headers);
  const isBasic = ({ name, value }: { name: string; value: string }) =>
    value === REMOVED && name.toLowerCase() === 'authorization';
  return [
    ...(headers.some(isBasic) ? ['import base64'] : []),
    'import os',
    'import ssl',
    'import urllib.request',
    '',
    'trust = ssl.create_default_context(cafile=".custos/ca.pem")',
    ...(headers.some(isBasic)
      ? ["credentials = f\"{os.environ['APP_ID']}:{os.environ['APP_SECRET']}\""]
      : []),
    'request = urllib.request.Request(',
    `    ${JSON.stringify(baseUrl + path)},`,
    `    method=${JSON.stringify(method)},`,
    '    headers={',
    ...headers.map((header) => {
      const { name, value } = header;
      const text = isBasic(header)
        ? '"Basic " + base64.b64encode(credentials.encode()).decode()'
        : value === REMOVED
          ? `os.environ[${JSON.stringify(variableOf(name))}]`
          : JSON.stringify(value);
      return `        ${JSON.stringify(name)}: ${text},`;
    }),
    '    },',
    ...(request.body === null ? [] : [`    data=${JSON.stringify(textOf(request.body))}.encode(),`]),
    ')',
    'with urllib.request.urlopen(request, context=trust) as response:',
    '    print(response.status, response.read().decode())',
  ].join('\n');
}

/** The code in Go that repeats a request with the standard library. */
function goOf({ method, path, request }: Sent, baseUrl: string): string {
  const headers = headersToSend(request.headers);
  const needsOs = headers.some(({ value }) => value === REMOVED);
  const body = request.body === null ? 'nil' : `strings.NewReader(${JSON.stringify(textOf(request.body))})`;
  const imports = [
    'fmt',
    'io',
    'net/http',
    ...(needsOs ? ['os'] : []),
    ...(body === 'nil' ? [] : ['strings']),
  ];
  return [
    'package main',
    '',
    'import (',
    ...imports.map((name) => `\t"${name}"`),
    ')',
    '',
    '// Go trusts the certificate of the sandbox with SSL_CERT_FILE=.custos/ca.pem',
    'func main() {',
    `\trequest, _ := http.NewRequest(${JSON.stringify(method)}, ${JSON.stringify(baseUrl + path)}, ${body})`,
    ...headers.map(({ name, value }) => {
      if (value !== REMOVED) return `\trequest.Header.Set(${JSON.stringify(name)}, ${JSON.stringify(value)})`;
      if (name.toLowerCase() === 'authorization') {
        return '\trequest.SetBasicAuth(os.Getenv("APP_ID"), os.Getenv("APP_SECRET"))';
      }
      return `\trequest.Header.Set(${JSON.stringify(name)}, os.Getenv(${JSON.stringify(variableOf(name))}))`;
    }),
    '\tresponse, err := http.DefaultClient.Do(request)',
    '\tif err != nil {',
    '\t\tpanic(err)',
    '\t}',
    '\tdefer response.Body.Close()',
    '\tbody, _ := io.ReadAll(response.Body)',
    '\tfmt.Println(response.Status, string(body))',
    '}',
  ].join('\n');
}

/** The code that repeats a request, by the name of its language. */
export function codeOf(exchange: RecordedExchange, baseUrl: string): readonly (readonly [string, string])[] {
  return [
    ['curl', curlCommand(exchange, baseUrl)],
    ['TypeScript', typescriptOf(exchange, baseUrl)],
    ['Python', pythonOf(exchange, baseUrl)],
    ['Go', goOf(exchange, baseUrl)],
    ['Test', testOf(exchange, baseUrl)],
  ];
}

function bodyInScript(body: unknown): string {
  return typeof body === 'string' ? JSON.stringify(body) : stringified(body);
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
