import { createPrivateKey, createSign } from 'node:crypto';
import canonicalize from 'canonicalize';
import { type OperationId, type Operations, operations } from '../../src/generated/operations.ts';
import { createJudge, type Judge } from './document-judge.ts';
import type { TestSandbox } from './sandbox.ts';

/** The path, query and body of an operation, without the parts that it does not have. */
export type CallInput<Id extends OperationId> = Part<'path', Operations[Id]['path']> &
  Part<'query', Operations[Id]['query']> &
  Part<'body', Operations[Id]['body']>;

/** A part is required if one of its members is required. */
type Part<Name extends string, Value> = [Value] extends [undefined]
  ? { [N in Name]?: undefined }
  : undefined extends Value
    ? { [N in Name]?: Value }
    : Record<string, never> extends Value
      ? { [N in Name]?: Value }
      : { [N in Name]: Value };

export interface CallOptions {
  /** Additional headers. Undefined removes a default header. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** Private P-256 keys (base64 PKCS#8) that sign the request one after the other. */
  readonly signWith?: readonly string[];
  readonly idempotencyKey?: string;
  /** The expiry in Unix ms. */
  readonly expiryMs?: number;
}

export interface Answer<Body> {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Body;
}

/** The body of every error response. */
export interface Refusal {
  readonly error: string;
  readonly code?: string;
  readonly data?: Record<string, unknown>;
}

/** Calls an operation that must succeed. Throws the response if it does not. */
export async function call<Id extends OperationId>(
  sandbox: TestSandbox,
  id: Id,
  input: CallInput<Id>,
  options: CallOptions = {},
): Promise<Answer<Operations[Id]['response']>> {
  const answer = await send(sandbox, id, input, options);
  if (answer.status >= 400) throw new Error(`${id} answered ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer as Answer<Operations[Id]['response']>;
}

/** Calls an operation that must fail, and returns status and body of the error. The input is untyped. */
export async function refusal(
  sandbox: TestSandbox,
  id: OperationId,
  input: LooseInput,
  options: CallOptions = {},
): Promise<{ status: number; body: Refusal }> {
  const { status, body } = await send(sandbox, id, input, options);
  if (status < 400) throw new Error(`${id} did not refuse: ${status} ${JSON.stringify(body)}`);
  return { status, body: body as Refusal };
}

interface LooseInput {
  readonly path?: object | undefined;
  readonly query?: object | undefined;
  readonly body?: unknown;
}

/** The judges by prefix. Every sandbox serves the same document, and reading it takes as long as starting a sandbox. */
const judges = new Map<string, Judge>();

/** Sends a request, validates the response against the document and returns it, whether it is an error or not. */
export function attempt(
  sandbox: TestSandbox,
  id: OperationId,
  input: LooseInput,
  options: CallOptions = {},
): Promise<Answer<unknown>> {
  return send(sandbox, id, input, options);
}

async function send(
  sandbox: TestSandbox,
  id: OperationId,
  input: LooseInput,
  options: CallOptions,
): Promise<Answer<unknown>> {
  const { method, path: template } = operations[id];
  const target = fillTemplate(template, input.path) + queryText(input.query);
  const answer = await sandbox.dispatcher.request({
    origin: sandbox.baseUrl,
    path: target,
    method,
    headers: headersFor(sandbox, { method, target, body: input.body }, options),
    body: input.body === undefined ? null : JSON.stringify(input.body),
  });
  const text = await answer.body.text();
  const contentType = answer.headers['content-type'];
  const isFile = typeof contentType === 'string' && !contentType.startsWith('application/json');
  const body: unknown = isFile ? text : text === '' ? undefined : JSON.parse(text);
  if (answer.headers['x-request-id'] === undefined) throw new Error(`${id} answered without x-request-id`);
  (await judgeOf(sandbox))({
    operationId: id,
    status: answer.statusCode,
    contentType: typeof contentType === 'string' ? contentType : undefined,
    body,
  });
  return { status: answer.statusCode, headers: answer.headers, body };
}

/** Returns the judge that all sandboxes with the same document share. */
export async function judgeOf(sandbox: TestSandbox): Promise<Judge> {
  const known = judges.get(sandbox.prefix) ?? createJudge(await sandbox.document());
  judges.set(sandbox.prefix, known);
  return known;
}

interface SentRequest {
  readonly method: string;
  readonly target: string;
  readonly body: unknown;
}

function headersFor(
  sandbox: TestSandbox,
  request: SentRequest,
  options: CallOptions,
): Record<string, string> {
  const { prefix, appId, appSecret } = sandbox;
  const signed: Record<string, string> = { [`${prefix}-app-id`]: appId };
  if (options.idempotencyKey !== undefined) signed[`${prefix}-idempotency-key`] = options.idempotencyKey;
  if (options.expiryMs !== undefined) signed[`${prefix}-request-expiry`] = String(options.expiryMs);
  const headers: Record<string, string | undefined> = {
    authorization: `Basic ${Buffer.from(`${appId}:${appSecret}`).toString('base64')}`,
    ...signed,
  };
  if (request.body !== undefined) headers['content-type'] = 'application/json';
  if (options.signWith !== undefined) {
    const signatures = options.signWith.map((key) => signRequest(sandbox, request, signed, key));
    headers[`${prefix}-authorization-signature`] = signatures.join(',');
  }
  Object.assign(headers, options.headers);
  return Object.fromEntries(
    Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

/** Signs like published clients, without the server's code: RFC 8785 JSON, ECDSA P-256 over SHA-256, DER. */
export function signRequest(
  sandbox: Pick<TestSandbox, 'baseUrl'>,
  { method, target, body }: SentRequest,
  headers: Readonly<Record<string, string>>,
  privateKey: string,
): string {
  const payload = canonicalize({
    version: 1,
    method,
    url: sandbox.baseUrl + target,
    body: body ?? '',
    headers,
  });
  const key = createPrivateKey({ key: Buffer.from(privateKey, 'base64'), format: 'der', type: 'pkcs8' });
  return createSign('sha256').update(payload!, 'utf8').sign(key, 'base64');
}

function fillTemplate(template: string, path: object | undefined): string {
  const values = (path ?? {}) as Record<string, string>;
  return template.replaceAll(/\{([^}]+)\}/g, (_, name: string) =>
    encodeURIComponent(values[name] ?? `no-${name}`),
  );
}

function queryText(query: object | undefined): string {
  const text = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const item of Array.isArray(value) ? value : [value])
      if (item !== undefined) text.append(name, String(item));
  }
  return text.size === 0 ? '' : `?${text}`;
}

/** Calls an operation of the control plane. */
export async function control(
  sandbox: TestSandbox,
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  path: string,
  body?: object,
): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
  const { statusCode, body: answer } = await sandbox.dispatcher.request({
    ...{ origin: sandbox.baseUrl, path, method },
    ...(body === undefined
      ? {}
      : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
  return { status: statusCode, body: (await answer.json()) as Record<string, unknown> };
}
