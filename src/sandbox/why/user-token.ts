import type { RefusedRequest, Repair, Why } from '../../ports/refusals.ts';
import { because, capital, inHeader, problem, quote, repeat, timeOf } from './problem.ts';
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
  readonly sub?: unknown;
}

/** Repairs a request with wrong app credentials. */
export const asApp = repeat('Send again with the app id and secret of this sandbox', { as_app: true });

/** Says how to get an access token. */
const GET_TOKEN =
  'Get an access token by `custos token <user>`, POST /v1/passwordless/authenticate or the device flow; GET /v1/apps/{app_id}/test_credentials returns accounts for tests.';

const SECRET_IN_BASIC =
  'The app secret belongs into HTTP Basic, after the app id: `curl -u "<app id>:<app secret>"`.';

const MIN_SECRET = 20;

/** Returns whether a text may be the secret of an app: it is long and has no dots, unlike a JWT. */
function isLikeSecret(token: string): boolean {
  return token.length >= MIN_SECRET && !token.includes('.');
}

/** A fault of a token: what was expected, what came, and what to do. */
interface Fault {
  readonly expected?: string;
  readonly came: string;
  readonly next: string;
}

/** Explains rejected user tokens, in the authorization header or in the body. */
export function whyToken(refused: RefusedRequest, facts: Facts): Why | undefined {
  const { message, headers, operation, body } = refused;
  if (message.endsWith('the app has no JWT authentication configured')) {
    return inBody({
      expected: 'a token that this app can verify',
      came: 'a token, and the app verifies none yet',
      next: 'Start the sandbox with `--jwt-key <file>`, or set `jwt_auth` by PUT /_sandbox/apps/{app_id}, for example to the key of GET /_sandbox/login; an access token of this sandbox needs neither.',
    });
  }
  const jwt = tokenIn(body);
  const reason = /the user JWT is not valid: (.+)$/s.exec(message)?.[1];
  if (reason !== undefined) {
    if (reason !== 'it is not a live access token of this app')
      return inBody(faultOfLogin(reason, refused.nowMs));
    return inBody((jwt === undefined ? undefined : faultOf(jwt, refused, facts)) ?? unverified);
  }
  const { authorization } = headers;
  const bearer = /^bearer(?: +(.*))?$/is.exec(String(authorization ?? ''));
  const security = facts.operations.find(({ id }) => id === operation)?.security;
  const takesUsers = security === 'app-or-user';
  if (bearer === null) {
    if (!message.endsWith('expected the access token of a user')) return undefined;
    return inAuthorization({
      expected: "a user's access token (`Authorization: Bearer …`)",
      came: 'the app secret',
      next: GET_TOKEN,
    });
  }
  const isSecret = isLikeSecret((bearer[1] ?? '').trim());
  if (!takesUsers && isSecret) {
    const fault = {
      expected: 'HTTP Basic: `Basic` and base64 of `<app id>:<app secret>`',
      came: '`Bearer` with a text that is no token of a user; it may be the app secret',
      next: SECRET_IN_BASIC,
    };
    return inAuthorization(fault, [asApp]);
  }
  if (!takesUsers) {
    return inAuthorization({
      expected: 'the app id and secret with HTTP Basic',
      came: 'a user token, which this operation does not take',
      next: 'Send the app id and secret with HTTP Basic.',
    });
  }
  if (message.includes('device'))
    return inAuthorization({ came: message, next: 'Send a token of a session of the user.' });
  if (message.endsWith('is frozen')) return frozen((bearer[1] ?? '').trim());
  if (message.endsWith('was revoked'))
    return inAuthorization({ came: `${message}, and such a token only reads`, next: GET_TOKEN });
  return inAuthorization(faultOf((bearer[1] ?? '').trim(), refused, facts) ?? unverified);
}

/** Explains that the user of a token is frozen, and names the request that unfreezes the user. */
function frozen(token: string): Why {
  const { sub } = claimsIn(token) ?? {};
  const user = typeof sub === 'string' ? sub : undefined;
  const found = problem({
    subject: `the user ${user === undefined ? '' : `${quote(user)} `}of the access token`,
    expected: 'a user who may act',
    came: 'one whom the app has frozen, who can only read',
    next: `Send DELETE /v1/users/${user ?? '{user_id}'}/freeze, and let the user log in again.`,
    at: inHeader('authorization'),
  });
  return because('credentials', [found], {
    repairs:
      user === undefined
        ? []
        : [{ kind: 'call', title: 'Unfreeze the user', operation: 'unfreezeUser', path: { user_id: user } }],
  });
}

const unverified: Fault = {
  came: 'one whose signature does not verify under a key of this app, or whose user was deleted: a reset and a restart in memory make new keys',
  next: GET_TOKEN,
};

/** Returns what is wrong with an access token, as far as that can be found without the key that signed it. */
function faultOf(token: string, { headers, nowMs }: RefusedRequest, { prefix }: Facts): Fault | undefined {
  const claims = claimsIn(token);
  if (claims === undefined) {
    return {
      expected: 'a JWT, three parts in base64url with dots between them',
      came: 'a malformed token',
      next: isLikeSecret(token) ? `${GET_TOKEN} ${SECRET_IN_BASIC}` : GET_TOKEN,
    };
  }
  const { iss, aud, exp, sid } = claims;
  if (iss !== `${prefix}.io`) {
    return {
      expected: `a token of this sandbox, whose \`iss\` is \`${prefix}.io\``,
      came: `one whose \`iss\` is ${quoteValue(iss)}`,
      next: `Send a token of the app's own login only to POST /v1/wallets/authenticate and POST /v1/user_signers/authenticate. ${GET_TOKEN}`,
    };
  }
  const appId = headers[`${prefix}-app-id`];
  if (typeof appId === 'string' && aud !== appId && !(Array.isArray(aud) && aud.includes(appId))) {
    return {
      expected: `a token for the app ${quoteValue(appId)} of the header \`${prefix}-app-id\``,
      came: `one for the app ${quoteValue(aud)}`,
      next: GET_TOKEN,
    };
  }
  if (typeof exp === 'number' && exp * 1000 <= nowMs) {
    return {
      expected: `one that is valid at ${timeOf(nowMs)}, where the clock of the sandbox is (GET /_sandbox/clock)`,
      came: `one that has expired at ${timeOf(exp * 1000)} (\`exp\`)`,
      next: `Set the clock back, or get a new one. ${GET_TOKEN}`,
    };
  }
  if (sid === undefined) {
    return {
      expected: 'the access token of the session',
      came: 'an identity token',
      next: GET_TOKEN,
    };
  }
  return undefined;
}

function faultOfLogin(reason: string, nowMs: number): Fault {
  if (reason === 'it has expired') {
    return {
      expected: `one that is valid at ${timeOf(nowMs)}, where the clock of the sandbox is (GET /_sandbox/clock)`,
      came: 'one that has expired',
      next: 'Issue a new token, or set the clock.',
    };
  }
  if (reason.startsWith('its signature') || reason.startsWith('no configured key')) {
    return {
      expected: 'one signed by the key of the app',
      came: `another: ${reason}`,
      next: 'Compare the key that signed it with `--jwt-key` or `jwt_auth` of the app (PUT /_sandbox/apps/{app_id}).',
    };
  }
  if (reason === 'it is malformed' || reason === 'it is not a JWT') {
    return {
      expected: 'three parts in base64url with dots between them',
      came: `another text: ${reason}`,
      next: 'Send the whole JWT, without quotes or line breaks.',
    };
  }
  return {
    expected: 'one that agrees with `jwt_auth` of the app',
    came: `another: ${reason}`,
    next: 'Compare the token with `jwt_auth` of the app (PUT /_sandbox/apps/{app_id}).',
  };
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

function quoteValue(value: unknown): string {
  const text = value === undefined ? 'missing' : typeof value === 'string' ? value : JSON.stringify(value);
  return `\`${text.length > 100 ? `${text.slice(0, 100)}…` : text}\``;
}

const accessToken = 'a live access token of this app';

function inAuthorization(
  { expected = accessToken, came, next }: Fault,
  repairs: readonly Repair[] = [],
): Why {
  const at = inHeader('authorization');
  const found = problem({
    ...{ subject: 'the header `authorization`', expected, came: plain(came), next: capital(next), at },
  });
  return because('credentials', [found], { repairs });
}

function inBody({ expected = accessToken, came, next }: Fault): Why {
  const at = { in: 'body', pointer: '/user_jwt' } as const;
  return because('credentials', [
    problem({ subject: "the user's token in the body", expected, came: plain(came), next, at }),
  ]);
}

function plain(text: string): string {
  return text.replace(/\.$/, '');
}
