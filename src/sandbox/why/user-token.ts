import type { RefusedRequest, Why } from '../../ports/requests.ts';
import type { KnownOperation } from './unknown-path.ts';

interface Facts {
  readonly prefix: string;
  readonly operations: readonly KnownOperation[];
}

interface Claims {
  readonly iss?: unknown;
  readonly aud?: unknown;
  readonly exp?: unknown;
  readonly sid?: unknown;
}

/** The command or request that returns an access token. */
const GET_TOKEN =
  'get an access token by `custos token <user>`, POST /v1/passwordless/authenticate or the device flow; GET /v1/apps/{app_id}/test_credentials returns accounts for tests';

/** Explains refused user tokens, in the authorization header or in the body. */
export function whyToken(refused: RefusedRequest, facts: Facts): Why | undefined {
  const { message, headers, operation, body } = refused;
  if (message.endsWith('the app has no JWT authentication configured')) {
    return because(
      'the app verifies no tokens yet: start the sandbox with `--jwt-key <file>`, or set `jwt_auth` by PUT /_sandbox/apps/{app_id}, for example to the key of GET /_sandbox/login; an access token of this sandbox needs neither',
    );
  }
  const jwt = tokenIn(body);
  const reason = /the user JWT is not valid: (.+)$/s.exec(message)?.[1];
  if (reason !== undefined) {
    const fault = jwt === undefined ? undefined : faultOf(jwt, refused, facts);
    if (reason === 'it is not a live access token of this app') return because(fault ?? unverified);
    return because(adviceOnLogin(reason, refused.nowMs));
  }
  const { authorization } = headers;
  const bearer = /^bearer(?: +(.*))?$/is.exec(String(authorization ?? ''));
  const security = facts.operations.find(({ id }) => id === operation)?.security;
  const takesUsers = security === 'app-or-user';
  if (bearer === null) {
    if (!message.endsWith('expected the access token of a user')) return undefined;
    return because(
      `this operation needs a user's access token (\`Authorization: Bearer …\`) instead of the app secret: ${GET_TOKEN}`,
    );
  }
  if (!takesUsers) {
    return because('this operation takes no user token: send the app id and secret with HTTP Basic');
  }
  if (message.includes('device')) return because(`${message}: send one of a session of the user`);
  if (message.endsWith('is frozen'))
    return because(`${message}: DELETE /v1/users/{user_id}/freeze lets it log in again`);
  if (message.endsWith('was revoked')) return because(`${message}: such a token only reads; ${GET_TOKEN}`);
  return because(faultOf((bearer[1] ?? '').trim(), refused, facts) ?? unverified);
}

const unverified =
  "the token's signature does not verify under a key of this app, or its user was deleted: a reset and a restart in memory make new keys, so get a new token";

/** Returns the fault of an access token, as far as it can be found without the token's key. */
function faultOf(token: string, { headers, nowMs }: RefusedRequest, { prefix }: Facts): string | undefined {
  const claims = claimsIn(token);
  if (claims === undefined) {
    return `the token is malformed: expected a JWT, three parts in base64url with dots between them; ${GET_TOKEN}`;
  }
  const { iss, aud, exp, sid } = claims;
  if (iss !== `${prefix}.io`) {
    return `the token was not issued by this sandbox: its \`iss\` is ${quoteValue(iss)}, expected \`${prefix}.io\`. A token of the app's own login is accepted by POST /v1/wallets/authenticate and POST /v1/user_signers/authenticate only; elsewhere ${GET_TOKEN}`;
  }
  const appId = headers[`${prefix}-app-id`];
  if (typeof appId === 'string' && aud !== appId && !(Array.isArray(aud) && aud.includes(appId))) {
    return `the token is for the app ${quoteValue(aud)}, the header \`${prefix}-app-id\` names ${quoteValue(appId)}`;
  }
  if (typeof exp === 'number' && exp * 1000 <= nowMs) {
    return `the token has expired: \`exp\` is ${timeOf(exp * 1000)}, and the clock of the sandbox is at ${timeOf(nowMs)} (GET /_sandbox/clock); get a new one or set the clock back`;
  }
  if (sid === undefined) return 'this is an identity token: send the access token of the session';
  return undefined;
}

function adviceOnLogin(reason: string, nowMs: number): string {
  if (reason === 'it has expired') {
    return `the token has expired by the clock of the sandbox, which is at ${timeOf(nowMs)} (GET /_sandbox/clock): issue a new one or set the clock`;
  }
  if (reason.startsWith('its signature') || reason.startsWith('no configured key')) {
    return `${reason}: compare the key that signed it with \`--jwt-key\` or \`jwt_auth\` of the app (PUT /_sandbox/apps/{app_id})`;
  }
  if (reason === 'it is malformed' || reason === 'it is not a JWT') {
    return `${reason}: expected three parts in base64url with dots between them`;
  }
  return `${reason}: compare the token with \`jwt_auth\` of the app (PUT /_sandbox/apps/{app_id})`;
}

function claimsIn(token: string): Claims | undefined {
  const parts = token.split('.');
  if (parts.length !== 3 || !parts.every((part) => /^[A-Za-z0-9_-]+$/.test(part))) return undefined;
  return objectIn(parts[0]!) === undefined ? undefined : objectIn(parts[1]!);
}

function objectIn(part: string): Claims | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function tokenIn(body: unknown): string | undefined {
  const token = (body as { readonly user_jwt?: unknown } | null | undefined)?.user_jwt;
  return typeof token === 'string' ? token : undefined;
}

// JavaScript dates end in the year 275760.
function timeOf(ms: number): string {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : String(ms);
}

function quoteValue(value: unknown): string {
  const text = value === undefined ? 'missing' : typeof value === 'string' ? value : JSON.stringify(value);
  return `\`${text.length > 100 ? `${text.slice(0, 100)}…` : text}\``;
}

function because(hint: string): Why {
  return { kind: 'credentials', hint, evidence: {} };
}
