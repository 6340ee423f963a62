import type { OperationDocument, Parameter, Settings } from './operation-document.ts';
import type { SampleRequest } from './sample-request.ts';
import { canonicalJson } from './sign-payload.ts';

/** The reader's input. */
export interface Filled {
  /** Values by parameter name. Empty values are not sent. */
  readonly parameters: Readonly<Record<string, string>>;
  /** The text of the body; undefined if the operation has none. */
  readonly body?: string | undefined;
  readonly appId: string;
  readonly appSecret: string;
  /** An access token. If it is set, it replaces the secret. */
  readonly userToken: string;
}

/** A request that can be sent, and the payload that owners sign. */
export interface ComposedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly payload: string;
}

const FORM = 'application/x-www-form-urlencoded';

/**
 * Builds the request from what the reader has entered.
 *
 * @throws SyntaxError if the body is not JSON.
 */
export function composeRequest(
  operation: OperationDocument,
  filled: Filled,
  { origin, prefix }: { readonly origin: string; readonly prefix: string },
): ComposedRequest {
  const given = (place: Parameter['in']) =>
    operation.parameters
      .filter((parameter) => parameter.in === place)
      .flatMap(({ name }): [string, string][] => {
        const value = filled.parameters[name] ?? '';
        return value === '' ? [] : [[name, value]];
      });
  const path = given('path').reduce(
    (text, [name, value]) => text.replace(`{${name}}`, encodeURIComponent(value)),
    operation.path ?? '',
  );
  const query = new URLSearchParams(given('query')).toString();
  const url = `${origin}${path}${query === '' ? '' : `?${query}`}`;
  const headers: Record<string, string> = {
    ...Object.fromEntries(given('header')),
    ...credentials(filled, prefix),
  };
  const type = Object.keys(operation.requestBody?.content ?? {})[0];
  const value = filled.body === undefined || filled.body.trim() === '' ? undefined : JSON.parse(filled.body);
  if (type !== undefined && value !== undefined) headers['content-type'] = type;
  const signed = [`${prefix}-app-id`, `${prefix}-idempotency-key`, `${prefix}-request-expiry`];
  const payload = canonicalJson({
    version: 1,
    method: operation.method,
    url,
    body: value,
    headers: Object.fromEntries(Object.entries(headers).filter(([name]) => signed.includes(name))),
  });
  return {
    method: operation.method,
    url,
    headers,
    payload,
    ...(value === undefined ? {} : { body: bodyText(value, type) }),
  };
}

function bodyText(value: unknown, type: string | undefined): string {
  if (type !== FORM) return JSON.stringify(value);
  return new URLSearchParams(
    Object.entries(value as object).map(([name, inner]): [string, string] => [name, String(inner)]),
  ).toString();
}

function credentials({ appId, appSecret, userToken }: Filled, prefix: string): Record<string, string> {
  const header = appId === '' ? {} : { [`${prefix}-app-id`]: appId };
  if (userToken !== '') return { ...header, authorization: `Bearer ${userToken}` };
  if (appSecret === '') return header;
  const bytes = new TextEncoder().encode(`${appId}:${appSecret}`);
  return { ...header, authorization: `Basic ${btoa(String.fromCharCode(...bytes))}` };
}

/**
 * Returns the initial value of a parameter. Optional parameters start empty, because their examples may exclude each
 * other.
 */
export function firstValue({ name, required, example, schema }: Parameter, { ids }: Settings): string {
  if (required !== true) return '';
  return ids[name] ?? (example === undefined ? String(schema.default ?? '') : String(example));
}

/** Returns an example in which ids are replaced by those of existing resources. */
export function withIds(value: unknown, ids: Settings['ids']): unknown {
  if (Array.isArray(value)) return value.map((item) => withIds(item, ids));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      const own = ids[name.replace(/ids$/, 'id')];
      if (own === undefined) return [name, withIds(inner, ids)];
      if (typeof inner === 'string') return [name, own];
      return [name, Array.isArray(inner) && inner.length > 0 ? [own] : inner];
    }),
  );
}

/** Returns the request in the form from which code samples are written. `keyFiles`: the private keys that sign. */
export function sampleOf(
  operation: OperationDocument,
  filled: Filled,
  settings: Settings & { readonly origin: string },
  keyFiles: readonly string[],
): SampleRequest {
  const { origin, prefix, credentials: published, caFile } = settings;
  const { url } = composeRequest(operation, filled, { origin, prefix });
  const appHeader = `${prefix}-app-id`;
  const headers = operation.parameters.flatMap(({ name, in: place }): [string, string][] => {
    const value = filled.parameters[name] ?? '';
    const isOwn = name === appHeader || name === `${prefix}-authorization-signature`;
    return place !== 'header' || value === '' || isOwn ? [] : [[name, value]];
  });
  const needsApp = operation.parameters.some(({ name }) => name === appHeader) || filled.appId !== '';
  return {
    ...{ method: operation.method, url, prefix, keyFiles, caFile },
    headers: Object.fromEntries(headers),
    value: filled.body === undefined || filled.body.trim() === '' ? undefined : JSON.parse(filled.body),
    isForm: Object.keys(operation.requestBody?.content ?? {})[0] === FORM,
    appId: needsApp ? filled.appId || 'your-app-id' : '',
    // CHOICE: code contains the secret only if it is the published secret of a sandbox.
    appSecret: published?.appSecret === filled.appSecret ? published.appSecret : undefined,
    credentials: credentialsOf(operation, filled),
  };
}

function credentialsOf({ security }: OperationDocument, { userToken }: Filled): SampleRequest['credentials'] {
  if (userToken !== '') return 'user';
  if (security.includes('appCredentials')) return 'secret';
  return security.includes('userToken') ? 'user' : 'none';
}
