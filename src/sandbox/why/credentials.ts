import type { RefusedRequest, Why } from '../../ports/requests.ts';
import type { KnownOperation } from './unknown-path.ts';
import { whyToken } from './user-token.ts';

interface Facts {
  readonly prefix: string;
  readonly operations: readonly KnownOperation[];
}

/** Explains errors about credentials, plain HTTP and expired requests. */
export function whyCredentials(refused: RefusedRequest, facts: Facts): Why | undefined {
  switch (refused.code) {
    case 'missing_or_invalid_service_app_id':
      return whyPrefix(refused, facts, 'app-id');
    case 'missing_or_empty_authorization_header':
      return whyPrefix(refused, facts, 'authorization-signature');
    case 'missing_or_invalid_token':
      return whyPrefix(refused, facts, 'app-id') ?? whyToken(refused, facts) ?? whyScheme(refused);
    case 'invalid_app_credentials':
      return whyApp(refused, facts);
    case 'https_required':
      return whyPlainHttp(refused);
    case 'request_expired':
      return whyExpired(refused, facts);
    case 'too_many_requests':
      return whyTooMany(refused);
    default:
      return undefined;
  }
}

/** Explains a header whose name begins with another prefix than this server's. */
function whyPrefix({ headers }: RefusedRequest, { prefix }: Facts, name: string): Why | undefined {
  if (headers[`${prefix}-${name}`] !== undefined) return undefined;
  const sent = Object.keys(headers).find((header) => header.endsWith(`-${name}`));
  const word = sent?.slice(0, -name.length - 1);
  if (word === undefined || !/^[a-z][a-z0-9]{0,31}$/.test(word)) return undefined;
  return {
    kind: 'credentials',
    hint: `the headers begin with \`${word}-\`, but this sandbox reads \`${prefix}-\`: start it with \`--prefix ${word}\`, or rename the headers`,
    evidence: { sent_prefix: word, prefix },
  };
}

function whyScheme({ headers: { authorization } }: RefusedRequest): Why | undefined {
  if (authorization === undefined) return undefined;
  const scheme = String(authorization).split(' ', 1)[0] ?? '';
  if (/^basic$/i.test(scheme)) {
    return {
      kind: 'credentials',
      hint: 'the authorization header is not HTTP Basic: expected `Basic` and base64 of `<app id>:<app secret>`',
      evidence: { scheme },
    };
  }
  return {
    kind: 'credentials',
    hint: 'expected HTTP Basic with the app id and secret in the authorization header',
    evidence: { scheme: 'other' },
  };
}

function whyApp({ headers }: RefusedRequest, { prefix }: Facts): Why | undefined {
  const named = headers[`${prefix}-app-id`];
  const appId = userNameOf(headers.authorization);
  if (appId === undefined) return undefined;
  if (appId === '') {
    return {
      kind: 'credentials',
      hint: 'the app id of HTTP Basic is empty: is a variable such as `$APP_ID` not set in this terminal? The sandbox prints its app id and secret at the start',
      evidence: { app_id: '' },
    };
  }
  if (typeof named === 'string' && named !== appId) {
    return {
      kind: 'credentials',
      hint: `HTTP Basic names the app \`${short(appId)}\`, the header \`${prefix}-app-id\` names \`${short(named)}\`: send the same id in both`,
      evidence: { basic: short(appId), header: short(named) },
    };
  }
  return {
    kind: 'credentials',
    hint: `this is not the secret of the app \`${short(appId)}\`, or there is no such app: the sandbox prints its app id and secret at the start, and GET /_sandbox/apps lists the apps`,
    evidence: { app_id: short(appId) },
  };
}

function userNameOf(header: unknown): string | undefined {
  const encoded = typeof header === 'string' ? /^basic +(\S+)$/i.exec(header)?.[1] : undefined;
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return colon === -1 ? undefined : text.slice(0, colon);
}

function whyPlainHttp({ headers: { host }, path }: RefusedRequest): Why {
  const url = `https://${short(String(host ?? '127.0.0.1'))}${short(path)}`;
  return {
    kind: 'credentials',
    hint: `use \`${url}\`, or start the sandbox with \`--plain-http\``,
    evidence: { url },
  };
}

function whyExpired({ headers, nowMs }: RefusedRequest, { prefix }: Facts): Why | undefined {
  const name = `${prefix}-request-expiry`;
  const expiry = headers[name];
  const clock = `the clock of the sandbox is at ${nowMs} (GET /_sandbox/clock)`;
  if (expiry === undefined) {
    return {
      kind: 'validation',
      hint: `send \`${name}\`, in Unix milliseconds, and sign it as one of the \`headers\`; ${clock}`,
      evidence: { now_ms: nowMs },
    };
  }
  const expiryMs = Number(expiry);
  if (typeof expiry !== 'string' || !Number.isSafeInteger(expiryMs)) return undefined;
  const isInSeconds = expiryMs < nowMs / 100 && expiryMs > nowMs / 2_000;
  if (isInSeconds) {
    return {
      kind: 'validation',
      hint: `\`${name}\` is ${expiryMs}, which looks like seconds: send Unix milliseconds, such as ${expiryMs * 1000}; ${clock}`,
      evidence: { expiry_ms: expiryMs, now_ms: nowMs },
    };
  }
  return {
    kind: 'validation',
    hint: `\`${name}\` is ${expiryMs}, and ${clock}; send ${expiryMs > nowMs ? 'an earlier' : 'a later'} time in Unix milliseconds`,
    evidence: { expiry_ms: expiryMs, now_ms: nowMs },
  };
}

function whyTooMany({ responseHeaders }: RefusedRequest): Why | undefined {
  const seconds = Number(responseHeaders['retry-after']);
  if (!Number.isFinite(seconds)) return undefined;
  return {
    kind: 'fault',
    hint: `wait ${seconds} s; \`--rate-limit\` sets the limit of a sandbox`,
    evidence: { retry_after_seconds: seconds },
  };
}

function short(text: string): string {
  return text.length > 100 ? `${text.slice(0, 100)}…` : text;
}
