import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { aliceKey, bobKey, carolKey } from '../../mocks/authorization-keys.ts';
import { ownServer } from '../adapters/own-server.ts';
import { canonicalPayloadTexts, type RequestToSign } from '../engine/authorization/request-signatures.ts';
import { invalidField } from '../errors.ts';
import { type OperationId, operations } from '../generated/operations.ts';
import type { AnsweredRequest } from '../ports/requests.ts';
import type { Entropy } from '../ports/runtime.ts';
import type { ReplaySandboxRequest } from '../sandbox/generated/schemas.ts';
import {
  type ApiCall,
  type ApiResponse,
  changedBody,
  type OwnApi,
  type Signer,
} from '../sandbox/requests/own-api.ts';

interface OwnApiOptions {
  readonly appId: string;
  readonly appSecret: string;
  /** The word that clients use in header names in place of `service`. */
  readonly prefix: string;
  /** The PEM of the authority that issued the server's certificate. */
  readonly ca: string;
  readonly entropy: Entropy;
}

/** Sends requests of the sandbox to its own API, and decides which of them are not recorded. */
export interface OwnRequests extends OwnApi {
  isRecorded(request: Pick<AnsweredRequest, 'rawHeaders'>): boolean;
  /** Sets the URL of the server. Must be called before the first request. */
  listensAt(url: string): void;
  close(): void;
}

/** A request before it is signed. */
interface Unsigned {
  readonly method: string;
  /** The path and the query. */
  readonly target: string;
  /** Headers with names in lower case. */
  readonly headers: Record<string, string>;
  readonly body: Uint8Array | undefined;
  /** The parsed body, which the signatures cover. */
  readonly json: unknown;
}

/** How long a new request is valid. */
const EXPIRY_MS = 60_000;

/** Headers that the client or the connection sets. */
const HOP_HEADERS = /^(connection|keep-alive|content-length|transfer-encoding|expect|upgrade|te|trailer)$/;

/**
 * Sends requests of the control plane through the server's own port, so that they are handled like every other
 * request: authenticated, recorded, and subject to faults.
 *
 * CHOICE: the control plane signs with the keys of the seed data, which are public. So pages and tools that call it
 * need neither a key nor the app secret.
 */
export function ownApi(options: OwnApiOptions): OwnRequests {
  const { prefix } = options;
  let listeningUrl = '';
  const server = ownServer(options.ca);
  const keys: Readonly<Record<Signer, KeyObject>> = {
    alice: keyOf(aliceKey.privateKey),
    bob: keyOf(bobKey.privateKey),
    carol: keyOf(carolKey.privateKey),
  };
  const publicKeys = Object.fromEntries(
    Object.entries(keys).map(([name, key]) => [name, createPublicKey(key)]),
  ) as Record<Signer, KeyObject>;
  const mark = Buffer.from(options.entropy.bytes(16)).toString('hex');
  const credentials = `Basic ${Buffer.from(`${options.appId}:${options.appSecret}`).toString('base64')}`;
  const signatureHeader = `${prefix}-authorization-signature`;

  /** Returns the payload that the signatures of a request cover. */
  const payloadOf = ({ method, target, json, headers }: Unsigned): string => {
    const covered = Object.fromEntries(
      ['app-id', 'idempotency-key', 'request-expiry'].flatMap((name) => {
        const value = headers[`${prefix}-${name}`];
        return value === undefined ? [] : [[`${prefix}-${name}`, value]];
      }),
    );
    const origin = headers.host === undefined ? listeningUrl : originWith(headers.host, listeningUrl);
    const [payload = ''] = canonicalPayloadTexts({
      ...{ method, body: json, headers: covered },
      urls: [origin + target],
    });
    return payload;
  };

  const signed = (request: Unsigned, signers: readonly Signer[]): Unsigned => {
    const { [signatureHeader]: _, ...headers } = request.headers;
    if (signers.length === 0) return { ...request, headers };
    const payload = Buffer.from(payloadOf({ ...request, headers }));
    const signatures = signers.map((name) => sign('sha256', payload, keys[name]).toString('base64'));
    return { ...request, headers: { ...headers, [signatureHeader]: signatures.join(',') } };
  };

  /**
   * Returns the seed data's keys that signed a request. Returns undefined if another key also signed it, or if a
   * signature covers something else.
   */
  const signersOf = (request: Unsigned): Signer[] | undefined => {
    const { [signatureHeader]: sent, ...headers } = request.headers;
    if (sent === undefined) return undefined;
    const payload = Buffer.from(payloadOf({ ...request, headers }));
    const names = Object.keys(keys) as Signer[];
    const signers = sent.split(',').map((signature) => {
      const bytes = Buffer.from(signature, 'base64');
      return names.find((name) => verify('sha256', payload, publicKeys[name], bytes));
    });
    return signers.every((name) => name !== undefined) ? signers : undefined;
  };

  const send = async (request: Unsigned, signal: AbortSignal): Promise<ApiResponse> => {
    const { method, target, headers, body } = request;
    const length = body === undefined ? {} : { 'content-length': String(body.length) };
    const url = listeningUrl + target;
    const response = await server.send({ url, method, headers: { ...headers, ...length }, body }, signal);
    return response ?? { status: 0, requestId: undefined, text: '' };
  };

  return {
    async call(call, signal) {
      const request = requestOf(call, { [`${prefix}-app-id`]: options.appId, authorization: credentials });
      if (!call.isRecorded) request.headers['custos-unrecorded'] = mark;
      return send(signed(request, call.signAs), signal);
    },
    async signIntent(intentId, signer, { nowMs, signal }) {
      const path = { intent_id: intentId };
      const ask = { path, query: {}, headers: {}, signAs: [] };
      const found = await this.call(
        { ...ask, operation: 'getIntent', body: undefined, isRecorded: false },
        signal,
      );
      if (found.status !== 200) return found;
      const [payload = ''] = canonicalPayloadTexts(
        proposedRequest(JSON.parse(found.text) as ReadIntent, prefix, options.appId),
      );
      const signature = sign('sha256', Buffer.from(payload), keys[signer]).toString('base64');
      const body = { signature, timestamp: nowMs };
      return this.call({ ...ask, operation: 'authorizeIntent', body, isRecorded: true }, signal);
    },
    async repeat(answered, { sign_as: signAs, as_app: asApp = false, changes }, { nowMs, signal }) {
      const recorded = recordedRequest(answered, prefix, changes?.own_prefix === true);
      const signers = signAs ?? signersOf(recorded);
      const isCovered = signers === undefined && recorded.headers[signatureHeader] !== undefined;
      if (isCovered && !asApp && changes === undefined) return send(recorded, signal);
      const request = changedRequest(recorded, changes ?? {});
      const { headers } = request;
      // With its key, the request would get the stored response, and nothing would be executed.
      const isKeyChosen = Object.keys(changes?.headers ?? {}).some(
        (name) => name.toLowerCase() === `${prefix}-idempotency-key`,
      );
      if (!isCovered && !isKeyChosen) delete headers[`${prefix}-idempotency-key`];
      if (asApp) Object.assign(headers, { [`${prefix}-app-id`]: options.appId, authorization: credentials });
      if (signAs !== undefined) {
        delete headers[`${prefix}-idempotency-key`];
        delete headers[`${prefix}-request-expiry`];
      }
      if (changes?.fresh_expiry === true) headers[`${prefix}-request-expiry`] = String(nowMs + EXPIRY_MS);
      if (changes?.fresh_idempotency_key === true) {
        headers[`${prefix}-idempotency-key`] = Buffer.from(options.entropy.bytes(16)).toString('hex');
      }
      return send(signers === undefined ? request : signed(request, signers), signal);
    },
    isRecorded: ({ rawHeaders }) => !rawHeaders.includes(mark),
    listensAt: (url) => {
      listeningUrl = url;
    },
    close: () => server.close(),
  };
}

/** The part of an intent that describes what its members sign. */
interface ReadIntent {
  readonly request_details: { readonly method: string; readonly url: string; readonly body?: unknown };
  readonly custom_expiry: boolean;
  readonly expires_at: number;
}

/** Returns the request that an intent proposes. If the proposal has an expiry, the request has it too. */
function proposedRequest(intent: ReadIntent, prefix: string, appId: string): RequestToSign {
  const { method, url, body } = intent.request_details;
  const expiry = intent.custom_expiry ? { [`${prefix}-request-expiry`]: String(intent.expires_at) } : {};
  return { method, urls: [url], body, headers: { [`${prefix}-app-id`]: appId, ...expiry } };
}

function keyOf(privateKey: string): KeyObject {
  return createPrivateKey({ key: Buffer.from(privateKey, 'base64'), format: 'der', type: 'pkcs8' });
}

function originWith(host: string, listeningUrl: string): string {
  return `${new URL(listeningUrl).protocol}//${host}`;
}

function requestOf(call: ApiCall, headers: Record<string, string>): Unsigned {
  if (!Object.hasOwn(operations, call.operation)) {
    throw invalidField('/operation', `expected an operation of the API, got \`${call.operation}\``);
  }
  const { method, path: template } = operations[call.operation as OperationId];
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = call.path[name];
    if (value === undefined) throw invalidField('/path', `expected \`${name}\`, got no such parameter`);
    // As path segments, `.` and `..` would lead to other paths.
    if (/^\.{0,2}$/.test(value)) throw invalidField(`/path/${name}`, `expected an id, got \`${value}\``);
    return encodeURIComponent(value);
  });
  const pairs = Object.entries(call.query).flatMap(([name, value]) =>
    [value].flat().map((item): [string, string] => [name, String(item)]),
  );
  const query = pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`;
  const given = Object.entries(call.headers).map(([name, value]) => [name.toLowerCase(), value]);
  const all = { ...headers, ...Object.fromEntries(given) };
  if (call.body === undefined) {
    return { method, target: path + query, headers: all, body: undefined, json: undefined };
  }
  all['content-type'] ??= 'application/json';
  const body = Buffer.from(JSON.stringify(call.body));
  return { method, target: path + query, headers: all, body, json: call.body };
}

/**
 * Converts a recorded request into one that can be sent again.
 *
 * @param isRenamed whether headers with another brand's prefix get the prefix of this server.
 */
function recordedRequest(
  { method, target, rawHeaders, rawBody }: AnsweredRequest,
  prefix: string,
  isRenamed: boolean,
): Unsigned {
  const headers: Record<string, string> = {};
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!.toLowerCase();
    if (!HOP_HEADERS.test(name)) headers[isRenamed ? ownName(name, prefix) : name] = rawHeaders[index + 1]!;
  }
  const body = rawBody.length === 0 ? undefined : rawBody;
  return { method, target, headers, body, json: body === undefined ? undefined : parsed(body) };
}

/** Matches the brand's prefix at the start of a header name. */
const BRANDED = /^[a-z][a-z0-9]{0,31}-(?=(app-id|authorization-signature|request-expiry|idempotency-key)$)/;

function ownName(name: string, prefix: string): string {
  return name.replace(BRANDED, `${prefix}-`);
}

type Changes = NonNullable<ReplaySandboxRequest['changes']>;

function changedRequest(request: Unsigned, { method, path, headers = {}, body: changes }: Changes): Unsigned {
  const all = { ...request.headers };
  for (const [name, value] of Object.entries(headers)) {
    if (value === null) delete all[name.toLowerCase()];
    else all[name.toLowerCase()] = value;
  }
  const changed = {
    ...request,
    method: method ?? request.method,
    target: path ?? request.target,
    headers: all,
  };
  if (changes === undefined) return changed;
  const json = changedBody(request.json, changes);
  all['content-type'] ??= 'application/json';
  return { ...changed, json, body: Buffer.from(JSON.stringify(json)) };
}

function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString('utf8'));
  } catch {
    return undefined;
  }
}
