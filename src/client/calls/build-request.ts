import type { KeyObject } from 'node:crypto';
import { candidateUrls, canonicalPayloadTexts } from '../../authorization/canonical-payload.ts';
import { ConfigError } from '../../config.ts';
import type { SandboxPlace } from '../sandbox-address.ts';
import type { SentRequest } from '../sandbox-client.ts';
import type { CallInput } from './call-input.ts';
import type { CallableOperation } from './find-operation.ts';
import { signPayload } from './signing-keys.ts';

/** How a call is authorized, and its other headers. */
export interface CallHeaders {
  readonly signers?: readonly KeyObject[];
  /** A user's access token, instead of the app secret. */
  readonly userToken?: string | undefined;
  readonly idempotencyKey?: string | undefined;
  /** Unix ms. */
  readonly expiryMs?: number | undefined;
  readonly others?: Readonly<Record<string, string>>;
}

/**
 * Builds the request of a call, with credentials and signatures as far as the operation accepts them.
 *
 * @throws ConfigError for credentials, signatures or headers that it does not accept.
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

function requireAccepted(operation: CallableOperation, headers: CallHeaders): void {
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
