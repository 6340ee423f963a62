import { asGo, asJava } from './compiled-samples.ts';
import {
  bodyText,
  contentType,
  formFields,
  otherSignedHeaders,
  payloadParts,
  type SampleRequest,
} from './sample-request.ts';

/** A language of code samples: the file as which a sample is saved, and the function that writes the sample. */
export interface SampleLanguage {
  readonly id: string;
  readonly title: string;
  readonly file: string;
  readonly write: (request: SampleRequest) => string;
}

/** The languages, in the order of their tabs. */
export const sampleLanguages: readonly SampleLanguage[] = [
  { id: 'sh', title: 'curl', file: 'request.sh', write: asCurl },
  { id: 'ts', title: 'TypeScript', file: 'request.ts', write: asTypeScript },
  { id: 'python', title: 'Python', file: 'request.py', write: asPython },
  { id: 'go', title: 'Go', file: 'request.go', write: asGo },
  { id: 'java', title: 'Java', file: 'Request.java', write: asJava },
];

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

function asCurl(request: SampleRequest): string {
  const { method, url, headers, value, appId, appSecret, credentials, keyFiles, caFile, prefix } = request;
  const hasBody = value !== undefined;
  const isSigned = keyFiles.length > 0;
  const variables = [
    ...(appId === '' ? [] : [`APP_ID=${quoted(appId)}`]),
    ...(credentials === 'secret' && appSecret !== undefined ? [`APP_SECRET=${quoted(appSecret)}`] : []),
  ];
  const lines = [
    `curl${caFile === undefined ? '' : ` --cacert ${wordOf(caFile)}`} -X ${method} ${isSigned ? '"$URL"' : quoted(url)}`,
    ...(credentials === 'secret' ? ['-u "$APP_ID:$APP_SECRET"'] : []),
    ...(credentials === 'user' ? ['-H "authorization: Bearer $USER_TOKEN"'] : []),
    ...(appId === '' ? [] : [`-H "${prefix}-app-id: $APP_ID"`]),
    ...Object.entries(headers).map(([name, text]) => `-H ${quoted(`${name}: ${text}`)}`),
    ...(hasBody ? [`-H 'content-type: ${contentType(request)}'`] : []),
    ...(isSigned ? [`-H "${prefix}-authorization-signature: $SIGNATURE"`] : []),
    ...(hasBody ? [`-d ${isSigned ? '"$BODY"' : quoted(shownBody(request))}`] : []),
  ].join(' \\\n  ');
  return [...variables, ...(isSigned ? curlSignature(request) : []), lines].join('\n');
}

/** Writes a path as one word of a shell command. Paths without special characters need no quotes. */
function wordOf(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : quoted(path);
}

/** Returns the body as a person would type it: on one line if it is short. */
function shownBody(request: SampleRequest): string {
  if (request.isForm) return bodyText(request);
  const text = JSON.stringify(request.value);
  return text.length < 48 ? text : JSON.stringify(request.value, null, 2);
}

function curlSignature(request: SampleRequest): string[] {
  const { headers, end } = payloadParts(request);
  const hasBody = request.value !== undefined;
  const app = request.appId === '' ? '' : `"${request.prefix}-app-id":"'"$APP_ID"'"`;
  const start = hasBody ? `'{"body":'"$BODY"',"headers":{` : `'{"headers":{`;
  const rest = quoted(headers).slice(1, -1);
  const sign = request.keyFiles.map(
    (file) => `$(printf %s "$PAYLOAD" | openssl dgst -sha256 -sign ${file} | base64 | tr -d '\\n')`,
  );
  return [
    `URL=${quoted(request.url)}`,
    ...(hasBody ? [`BODY=${quoted(bodyText(request))}`] : []),
    '# The canonical form (RFC 8785) of what is signed: no spaces, keys in alphabetical order.',
    `PAYLOAD=${start}${app}${rest}${end}'"$URL"'","version":1}'`,
    `SIGNATURE=${sign.join(',')}`,
  ];
}

/** Writes a value as source code. `words` are the language's names of null, true and false. */
function literal(
  value: unknown,
  indent: string,
  style: {
    readonly text: (text: string) => string;
    readonly key: (name: string) => string;
    readonly words: readonly [string, string, string];
  },
): string {
  const [nothing, yes, no] = style.words;
  if (value === null) return nothing;
  if (typeof value === 'boolean') return value ? yes : no;
  if (typeof value === 'string') return style.text(value);
  if (typeof value !== 'object') return String(value);
  const deeper = `${indent}${' '.repeat(2)}`;
  const isList = Array.isArray(value);
  const parts = isList
    ? value.map((item) => literal(item, deeper, style))
    : Object.entries(value).map(([name, inner]) => `${style.key(name)}: ${literal(inner, deeper, style)}`);
  const [open, close] = isList ? ['[', ']'] : ['{', '}'];
  if (parts.length === 0) return open + close;
  const line = `${open}${isList ? '' : ' '}${parts.join(', ')}${isList ? '' : ' '}${close}`;
  if (line.length + indent.length < 64 && !line.includes('\n')) return line;
  return `${open}\n${parts.map((part) => `${deeper}${part},\n`).join('')}${indent}${close}`;
}

const scriptText = (text: string): string =>
  text.includes("'") || /[\\\p{Cc}]/u.test(text) ? JSON.stringify(text) : `'${text}'`;

const script = {
  text: scriptText,
  key: (name: string) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : scriptText(name)),
  words: ['null', 'true', 'false'],
} as const;

const python = {
  text: (text: string) => JSON.stringify(text),
  key: (name: string) => JSON.stringify(name),
  words: ['None', 'True', 'False'],
} as const;

function asTypeScript(request: SampleRequest): string {
  const { method, url, headers, value, isForm, appId, appSecret, credentials, keyFiles, caFile, prefix } =
    request;
  const isSigned = keyFiles.length > 0;
  const secret = appSecret === undefined ? 'process.env.APP_SECRET' : 'appSecret';
  const own = [...(appId === '' ? [] : [`    '${prefix}-app-id': appId,`])];
  const others = Object.entries(headers).map(
    ([name, text]) => `    ${script.key(name)}: ${scriptText(text)},`,
  );
  const signed = new Set(
    otherSignedHeaders(request).map(
      ([name]) => `    ${script.key(name)}: ${scriptText(headers[name] ?? '')},`,
    ),
  );
  const body = isForm ? 'new URLSearchParams(body)' : 'JSON.stringify(body)';
  return [
    `// ${caFile === undefined ? '' : `NODE_EXTRA_CA_CERTS=${wordOf(caFile)} `}npx node request.ts`,
    ...(isSigned
      ? [
          "import { createPrivateKey, sign } from 'node:crypto';",
          "import { readFileSync } from 'node:fs';",
          "import canonicalize from 'canonicalize';",
        ]
      : []),
    ...(caFile !== undefined || isSigned ? [''] : []),
    ...(appId === '' ? [] : [`const appId = ${scriptText(appId)};`]),
    ...(credentials === 'secret' && appSecret !== undefined
      ? [`const appSecret = ${scriptText(appSecret)};`]
      : []),
    `const url = ${scriptText(url)};`,
    ...(value === undefined
      ? []
      : [`const body = ${literal(isForm ? Object.fromEntries(formFields(value)) : value, '', script)};`]),
    ...(isSigned
      ? [
          'const signed = {',
          ...[...own, ...signed].map((line) => line.slice(2)),
          '};',
          `const payload = canonicalize({ version: 1, method: '${method}', url, ${value === undefined ? '' : 'body, '}headers: signed })!;`,
          `const signatures = ${literal(keyFiles, '', script)}.map((file) =>`,
          "  sign('sha256', Buffer.from(payload), createPrivateKey(readFileSync(file))).toString('base64'),",
          ');',
        ]
      : []),
    '',
    'const response = await fetch(url, {',
    `  method: '${method}',`,
    '  headers: {',
    ...(credentials === 'secret'
      ? [`    authorization: \`Basic \${btoa(\`\${appId}:\${${secret}}\`)}\`,`]
      : []),
    ...(credentials === 'user' ? [`    authorization: \`Bearer \${process.env.USER_TOKEN}\`,`] : []),
    ...(isSigned ? ['    ...signed,'] : own),
    ...others.filter((line) => !isSigned || !signed.has(line)),
    ...(value === undefined ? [] : [`    'content-type': '${contentType(request)}',`]),
    ...(isSigned ? [`    '${prefix}-authorization-signature': signatures.join(','),`] : []),
    '  },',
    ...(value === undefined ? [] : [`  body: ${body},`]),
    '});',
    'console.log(await response.text());',
  ].join('\n');
}

function asPython(request: SampleRequest): string {
  const { method, url, headers, value, isForm, appId, appSecret, credentials, keyFiles, caFile, prefix } =
    request;
  const isSigned = keyFiles.length > 0;
  const fromEnvironment = credentials === 'user' || (credentials === 'secret' && appSecret === undefined);
  const sent = {
    ...(appId === '' ? {} : { [`${prefix}-app-id`]: appId }),
    ...headers,
  };
  const signedNames = [`${prefix}-app-id`, ...otherSignedHeaders(request).map(([name]) => name)];
  const [signed, others] = [true, false].map((isIn) =>
    Object.entries(sent).filter(([name]) => (isSigned && signedNames.includes(name)) === isIn),
  ) as [[string, string][], [string, string][]];
  const headerLines = (entries: readonly [string, string][], indent: string): string[] =>
    entries.map(
      ([name, text]) =>
        `${indent}${JSON.stringify(name)}: ${name === `${prefix}-app-id` ? 'app_id' : JSON.stringify(text)},`,
    );
  const secret = appSecret === undefined ? 'os.environ["APP_SECRET"]' : 'app_secret';
  return [
    ...(isSigned
      ? [`import base64, json${fromEnvironment ? ', os' : ''}`]
      : fromEnvironment
        ? ['import os']
        : []),
    'import requests',
    ...(isSigned
      ? [
          'from cryptography.hazmat.primitives import hashes, serialization',
          'from cryptography.hazmat.primitives.asymmetric import ec',
        ]
      : []),
    '',
    ...(appId === '' ? [] : [`app_id = ${JSON.stringify(appId)}`]),
    ...(credentials === 'secret' && appSecret !== undefined
      ? [`app_secret = ${JSON.stringify(appSecret)}`]
      : []),
    `url = ${JSON.stringify(url)}`,
    ...(value === undefined
      ? []
      : [`body = ${literal(isForm ? Object.fromEntries(formFields(value)) : value, '', python)}`]),
    ...(isSigned ? pythonSignature(request, headerLines(signed, '  ')) : []),
    '',
    `response = requests.request(`,
    `  "${method}",`,
    '  url,',
    ...(value === undefined ? [] : [`  ${isForm ? 'data' : 'json'}=body,`]),
    '  headers={',
    ...(isSigned ? ['    **signed,'] : headerLines(signed, '    ')),
    ...headerLines(others, '    '),
    ...(credentials === 'user' ? ['    "authorization": f"Bearer {os.environ[\'USER_TOKEN\']}",'] : []),
    ...(isSigned ? [`    "${prefix}-authorization-signature": ",".join(signatures),`] : []),
    '  },',
    ...(credentials === 'secret' ? [`  auth=(app_id, ${secret}),`] : []),
    ...(caFile === undefined ? [] : [`  verify=${JSON.stringify(caFile)},`]),
    ')',
    'print(response.text)',
  ].join('\n');
}

function pythonSignature({ method, value, keyFiles }: SampleRequest, signed: readonly string[]): string[] {
  return [
    'signed = {',
    ...signed,
    '}',
    `request = {"version": 1, "method": "${method}", "url": url, ${value === undefined ? '' : '"body": body, '}"headers": signed}`,
    'payload = json.dumps(request, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()',
    'signatures = []',
    `for name in ${JSON.stringify(keyFiles)}:`,
    '  with open(name, "rb") as file:',
    '    key = serialization.load_pem_private_key(file.read(), password=None)',
    '  signatures.append(base64.b64encode(key.sign(payload, ec.ECDSA(hashes.SHA256()))).decode())',
  ];
}
