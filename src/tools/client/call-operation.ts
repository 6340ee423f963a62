import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type AuthorizationKey, aliceKey, bobKey, carolKey } from '../../../mocks/authorization-keys.ts';
import { ConfigError } from '../../config/config.ts';
import { candidateUrls, canonicalPayloadTexts } from '../../engine/authorization/request-signatures.ts';
import { type OperationDescriptor, operations } from '../../generated/operations.ts';
import { InvalidPathError, parsePath, withValueAt } from '../../sandbox/events.ts';
import { operations as controlOperations } from '../../sandbox/generated/operations.ts';
import { nearestName } from '../../sandbox/why/nearest.ts';
import type { SandboxPlace } from './sandbox-address.ts';
import type { SentRequest } from './sandbox-client.ts';

/** An operation of the API, or of a sandbox's control plane. */
export type CallableOperation = Omit<OperationDescriptor, 'id'> & { readonly id: string };

const MAX_NEAR = 5;

const callable: ReadonlyMap<string, CallableOperation> = new Map(
  [
    ...Object.values<CallableOperation>(operations),
    ...Object.values<CallableOperation>(controlOperations),
  ].map((operation) => [operation.id, operation]),
);

export function listOperations(): readonly CallableOperation[] {
  return [...callable.values()];
}

/**
 * Finds an operation by its id.
 *
 * @throws ConfigError, which suggests operations with similar names.
 */
export function findOperation(id: string): CallableOperation {
  const found = callable.get(id);
  if (found !== undefined) return found;
  const near = similarOperations(id);
  const advice =
    near.length === 0
      ? 'see /docs for all of them'
      : `did you mean ${near.map((name) => `\`${name}\``).join(', ')}?`;
  throw new ConfigError('invalid arguments:', [`no operation is called \`${id}\`; ${advice}`]);
}

/** Returns similar names: first those that a misspelling may mean, then those that contain the text. */
function similarOperations(text: string): string[] {
  const ids = [...callable.keys()];
  const nearest = nearestName(text, ids);
  const containing = ids.filter((id) => text.length > 2 && id.toLowerCase().includes(text.toLowerCase()));
  return [...new Set([...(nearest === undefined ? [] : [nearest]), ...containing])].slice(0, MAX_NEAR);
}

/** Returns the names of the path parameters, in order. */
export function pathParametersOf({ path }: Pick<CallableOperation, 'path'>): string[] {
  return [...path.matchAll(/\{([^{}]+)\}/g)].map(([, name = '']) => name);
}

/** The input of a call, without its headers. */
export interface CallInput {
  readonly path: Readonly<Record<string, string>>;
  /** A query parameter may occur several times. */
  readonly query: readonly (readonly [name: string, value: string])[];
  /** The value of the JSON body. Undefined if no body is sent. */
  readonly body: unknown;
}

interface Assignment {
  readonly name: string;
  readonly value: unknown;
}

/**
 * Reads the arguments of a call: values of path parameters in the order of the path, and assignments `name=text` or
 * `name:=json`. An assignment first looks for a path parameter of its name that has no value yet. If there is none,
 * it sets a field of the body, where dots in the name lead to nested fields. If the operation has no body, it sets a
 * query parameter.
 *
 * @throws ConfigError
 */
export function readCallInput(
  operation: CallableOperation,
  texts: readonly string[],
  body: unknown = undefined,
): CallInput {
  const assignments: Assignment[] = [];
  const values: string[] = [];
  for (const text of texts) {
    const assignment = readAssignment(text);
    if (assignment === undefined) values.push(text);
    else assignments.push(assignment);
  }
  const names = pathParametersOf(operation);
  if (values.length > names.length) throw unexpected(operation, values[names.length]!, names);
  const path: Record<string, string> = {};
  for (const [index, value] of values.entries()) path[names[index]!] = value;
  const fields = assignments.filter(({ name, value }) => {
    const isOfPath = names.includes(name) && path[name] === undefined;
    if (isOfPath) path[name] = String(value);
    return !isOfPath;
  });
  const missing = names.filter((name) => path[name] === undefined || path[name] === '');
  if (missing.length > 0) throw incomplete(operation, missing, names);
  if (!operation.hasBody) return { path, query: fields.flatMap(queryPairs), body: undefined };
  const whole = fields.reduce(withField, body);
  return { path, query: [], body: whole ?? (operation.bodyRequired ? {} : undefined) };
}

function readAssignment(text: string): Assignment | undefined {
  const [, name, mark, value = ''] = /^([A-Za-z_][\w.-]*|\/[^=]*?)(:?=)(.*)$/s.exec(text) ?? [];
  if (name === undefined) return undefined;
  return { name, value: mark === '=' ? value : readJson(name, value) };
}

function readJson(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalid(`${name}: expected JSON, got \`${text}\`: ${(error as Error).message}`);
  }
}

function withField(body: unknown, { name, value }: Assignment): unknown {
  try {
    return withValueAt(body, parsePath(name), value);
  } catch (error) {
    if (error instanceof InvalidPathError) throw invalid(`${name}: ${error.message}`);
    throw error;
  }
}

/** Converts a value to query parameters. A list becomes one pair per element, as the server expects. */
function queryPairs({ name, value }: Assignment): [string, string][] {
  const items: readonly unknown[] = Array.isArray(value) ? value : [value];
  return items.map((item) => [name, typeof item === 'string' ? item : JSON.stringify(item)]);
}

function unexpected(operation: CallableOperation, value: string, names: readonly string[]): ConfigError {
  const takes = names.length === 0 ? 'no path parameters' : `the path parameters ${names.join(', ')}`;
  return invalid(`\`${operation.id}\` takes ${takes}; expected name=value or name:=json, got \`${value}\``);
}

function incomplete(
  operation: CallableOperation,
  missing: readonly string[],
  names: readonly string[],
): ConfigError {
  const usage = ['custos call', operation.id, ...names.map((name) => `<${name}>`)].join(' ');
  return invalid(`${missing.join(', ')}: expected a value, got none; usage: ${usage}`);
}

function invalid(fault: string): ConfigError {
  return new ConfigError('invalid arguments:', [fault]);
}

/** The keys of the seeded users, which are public. */
const seededKeys: Readonly<Record<string, AuthorizationKey>> = {
  alice: aliceKey,
  bob: bobKey,
  carol: carolKey,
};

const seededSigners = Object.keys(seededKeys);

/**
 * Returns the key of a seeded user.
 *
 * @throws ConfigError for any other name.
 */
export function seededKey(name: string): KeyObject {
  const key = Object.hasOwn(seededKeys, name) ? seededKeys[name] : undefined;
  if (key !== undefined) return fromPkcs8(key.privateKey);
  throw invalidKey(
    `--sign: expected ${seededSigners.join(', ')}, got \`${name}\`; --key <file> signs with a key of your own`,
  );
}

/**
 * Reads a P-256 private key from a file: PEM, or base64 PKCS #8 with or without the prefix `wallet-auth:` of
 * published clients.
 *
 * @throws ConfigError, whose message does not contain the key.
 */
export function keyFromFile(file: string): KeyObject {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch {
    throw invalidKey(`--key: \`${file}\` cannot be read`);
  }
  let key: KeyObject | undefined;
  try {
    key = text.includes('-----BEGIN') ? createPrivateKey(text) : fromPkcs8(text.replace(/^wallet-auth:/, ''));
  } catch {
    // The text is not a key.
  }
  if (key?.asymmetricKeyDetails?.namedCurve === 'prime256v1') return key;
  throw invalidKey(`--key: expected a P-256 private key as PEM or base64 PKCS #8 in \`${file}\``);
}

/** Signs a payload for the authorization header: base64 of the DER of ECDSA over SHA-256. */
function signPayload(key: KeyObject, payload: string): string {
  return sign('sha256', Buffer.from(payload, 'utf8'), key).toString('base64');
}

function fromPkcs8(base64: string): KeyObject {
  return createPrivateKey({ key: Buffer.from(base64, 'base64'), format: 'der', type: 'pkcs8' });
}

function invalidKey(fault: string): ConfigError {
  return new ConfigError('invalid option:', [fault]);
}

/** The credentials and the other headers of a call. */
export interface CallHeaders {
  readonly signers?: readonly KeyObject[];
  /** A user's access token, which replaces the app secret. */
  readonly userToken?: string | undefined;
  readonly idempotencyKey?: string | undefined;
  /** Unix ms. */
  readonly expiryMs?: number | undefined;
  readonly others?: Readonly<Record<string, string>>;
}

/**
 * Builds the request of a call, with the credentials and signatures that the operation accepts.
 *
 * @throws ConfigError for given credentials, signatures or headers that it does not accept.
 */
export function buildRequest(
  place: SandboxPlace,
  operation: CallableOperation,
  { input, headers }: { readonly input: CallInput; readonly headers: CallHeaders },
): SentRequest {
  requireAccepted(operation, headers);
  const { signers = [], idempotencyKey, expiryMs, others } = headers;
  const { method } = operation;
  const target = targetOf(operation, input);
  const name = (suffix: string): string => `${place.prefix}-${suffix}`;
  const signedHeaders: Record<string, string> = {
    ...(isOfControlPlane(operation) ? {} : { [name('app-id')]: place.appId }),
    ...(idempotencyKey === undefined ? {} : { [name('idempotency-key')]: idempotencyKey }),
    ...(expiryMs === undefined ? {} : { [name('request-expiry')]: String(expiryMs) }),
  };
  const [payload = ''] = canonicalPayloadTexts({
    method,
    urls: candidateUrls({ publicBaseUrls: [], origin: place.url.replace(/\/$/, ''), target }),
    body: input.body,
    headers: signedHeaders,
  });
  const signatures = signers.map((key) => signPayload(key, payload));
  return {
    method,
    target,
    headers: {
      ...credentials(place, operation, headers.userToken),
      ...signedHeaders,
      ...(input.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(signatures.length === 0 ? {} : { [name('authorization-signature')]: signatures.join(',') }),
      ...others,
    },
    bodyText: input.body === undefined ? undefined : JSON.stringify(input.body),
  };
}

function isOfControlPlane({ path }: CallableOperation): boolean {
  return path.startsWith('/_sandbox/');
}

/**
 * Requires that the operation accepts these headers.
 *
 * @throws ConfigError for credentials, signatures or headers that it does not accept.
 */
export function requireAccepted(operation: CallableOperation, headers: CallHeaders): void {
  const faults = [
    (headers.signers ?? []).length > 0 && !operation.signed && 'authorization signatures',
    headers.idempotencyKey !== undefined && !operation.idempotent && 'an idempotency key',
    headers.expiryMs !== undefined && !operation.expiry && 'an expiry',
    headers.userToken !== undefined && operation.security !== 'app-or-user' && "users' tokens",
  ].filter((what) => what !== false);
  if (faults.length === 0) return;
  throw new ConfigError(
    'invalid options:',
    faults.map((what) => `\`${operation.id}\` does not accept ${what}`),
  );
}

function credentials(
  { appId, appSecret }: SandboxPlace,
  operation: CallableOperation,
  userToken: string | undefined,
): Record<string, string> {
  if (userToken !== undefined) return { authorization: `Bearer ${userToken}` };
  if (operation.security === 'none' || isOfControlPlane(operation)) return {};
  return { authorization: `Basic ${Buffer.from(`${appId}:${appSecret}`).toString('base64')}` };
}

function targetOf({ path: template }: CallableOperation, { path, query }: CallInput): string {
  const filled = template.replaceAll(/\{([^{}]+)\}/g, (_, name: string) => encodeURIComponent(path[name]!));
  const text = new URLSearchParams(query.map(([name, value]): [string, string] => [name, value])).toString();
  return text === '' ? filled : `${filled}?${text}`;
}
