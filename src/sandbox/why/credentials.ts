import type { RefusedRequest, Why } from '../../ports/refusals.ts';
import { because, cut, inHeader, problem, quote, repeat } from './problem.ts';
import type { KnownOperation } from './unknown-path.ts';
import { asApp, whyToken } from './user-token.ts';

interface Facts {
  readonly prefix: string;
  readonly operations: readonly KnownOperation[];
}

const WHERE_SECRET =
  'The sandbox prints its app id and secret at the start, and GET /_sandbox/apps lists the apps.';

/** Explains errors about credentials, plain HTTP and expired requests. */
export function whyCredentials(refused: RefusedRequest, facts: Facts): Why | undefined {
  switch (refused.code) {
    case 'missing_or_invalid_service_app_id':
      return whyPrefix(refused, facts, 'app-id') ?? whyAppId(refused, facts);
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

/** Explains a header whose prefix is not that of this server. */
function whyPrefix({ headers }: RefusedRequest, { prefix }: Facts, name: string): Why | undefined {
  if (headers[`${prefix}-${name}`] !== undefined) return undefined;
  const sent = Object.keys(headers).find((header) => header.endsWith(`-${name}`));
  const word = sent?.slice(0, -name.length - 1);
  if (word === undefined || !/^[a-z][a-z0-9]{0,31}$/.test(word)) return undefined;
  const found = problem({
    subject: `the header \`${prefix}-${name}\``,
    expected: `headers that begin with \`${prefix}-\``,
    came: `\`${word}-${name}\``,
    text: `The headers begin with \`${word}-\`, but this sandbox reads \`${prefix}-\`: expected \`${prefix}-${name}\`, got \`${word}-${name}\`.`,
    next: `Start the sandbox with \`--prefix ${word}\`, or rename the headers.`,
    at: inHeader(`${word}-${name}`),
  });
  return because('credentials', [found], {
    evidence: { sent_prefix: word, prefix },
    repairs: [
      repeat(`Send again with headers that begin with \`${prefix}-\``, { changes: { own_prefix: true } }),
      {
        kind: 'command',
        title: `Start the sandbox again with the prefix \`${word}\``,
        command: `custos sandbox --prefix ${word}`,
      },
    ],
  });
}

function whyAppId({ headers }: RefusedRequest, { prefix }: Facts): Why {
  const name = `${prefix}-app-id`;
  const basic = userNameOf(headers.authorization);
  const found = problem({
    subject: `the header \`${name}\``,
    expected: basic ? `the app id ${quote(basic)}, as in HTTP Basic` : 'the id of the app',
    came: headers[name] === undefined ? 'no such header' : quote(String(headers[name]), 100),
    next: `Send the app id in the header \`${name}\`, beside HTTP Basic.`,
    at: inHeader(name),
  });
  return because('credentials', [found], { repairs: [asApp] });
}

function whyScheme({ headers: { authorization } }: RefusedRequest): Why {
  const scheme = String(authorization ?? '').split(' ', 1)[0] ?? '';
  const isBasic = /^basic$/i.test(scheme);
  const came =
    authorization === undefined
      ? 'no such header'
      : isBasic
        ? '`Basic` with other content'
        : 'another scheme';
  const found = problem({
    subject: 'the header `authorization`',
    expected: 'HTTP Basic: `Basic` and base64 of `<app id>:<app secret>`',
    came,
    next: 'Send the app id and secret with HTTP Basic; the sandbox prints both at the start.',
    at: inHeader('authorization'),
  });
  return because('credentials', [found], {
    ...(authorization === undefined ? {} : { evidence: { scheme: isBasic ? scheme : 'other' } }),
    repairs: [asApp],
  });
}

function whyApp({ headers }: RefusedRequest, { prefix }: Facts): Why | undefined {
  const named = headers[`${prefix}-app-id`];
  const appId = userNameOf(headers.authorization);
  if (appId === undefined) return undefined;
  if (appId === '') {
    const found = problem({
      subject: 'the app id of HTTP Basic',
      expected: 'the id of an app',
      came: 'an empty text',
      text: 'The app id of HTTP Basic is empty: expected the id of an app, got an empty text. Is a variable such as `$APP_ID` not set in this terminal?',
      next: 'Set the variable; the sandbox prints its app id and secret at the start.',
      at: inHeader('authorization'),
    });
    return because('credentials', [found], { evidence: { app_id: '' }, repairs: [asApp] });
  }
  if (typeof named === 'string' && named !== appId) {
    const found = problem({
      subject: `the header \`${prefix}-app-id\``,
      expected: `the app of HTTP Basic, ${quote(appId, 100)}`,
      came: quote(named, 100),
      next: 'Send the same app id in both.',
      at: inHeader(`${prefix}-app-id`),
    });
    return because('credentials', [found], {
      evidence: { basic: cut(appId, 100), header: cut(named, 100) },
      repairs: [asApp],
    });
  }
  const found = problem({
    subject: `the app ${quote(appId, 100)}`,
    expected: 'an app of this sandbox with its secret',
    came: 'another secret, or an id that no app has',
    next: WHERE_SECRET,
    at: inHeader('authorization'),
  });
  return because('credentials', [found], { evidence: { app_id: cut(appId, 100) }, repairs: [asApp] });
}

function userNameOf(header: unknown): string | undefined {
  const encoded = typeof header === 'string' ? /^basic +(\S+)$/i.exec(header)?.[1] : undefined;
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return colon === -1 ? undefined : text.slice(0, colon);
}

function whyPlainHttp({ headers: { host }, path }: RefusedRequest): Why {
  const url = `https://${cut(String(host ?? '127.0.0.1'), 100)}${cut(path, 100)}`;
  const found = problem({
    subject: 'the URL',
    expected: `\`${url}\``,
    came: 'plain HTTP',
    next: `Use \`https\`, or start the sandbox with \`--plain-http\`.`,
  });
  return because('credentials', [found], {
    evidence: { url },
    repairs: [
      {
        kind: 'command',
        title: 'Start the sandbox again with plain HTTP',
        command: 'custos sandbox --plain-http',
      },
    ],
  });
}

function whyExpired({ headers, nowMs }: RefusedRequest, { prefix }: Facts): Why | undefined {
  const name = `${prefix}-request-expiry`;
  const expiry = headers[name];
  const clock = `the clock of the sandbox is at ${nowMs} (GET /_sandbox/clock)`;
  const repairs = [repeat('Send again with an expiry in one minute', { changes: { fresh_expiry: true } })];
  const parts = { subject: `the header \`${name}\``, at: inHeader(name) };
  if (expiry === undefined) {
    const found = problem({
      ...parts,
      expected: `Unix milliseconds soon after now: ${clock}`,
      came: 'no such header',
      next: `Send \`${name}\`, and sign it as one of the \`headers\`.`,
    });
    return because('validation', [found], { evidence: { now_ms: nowMs }, repairs });
  }
  const expiryMs = Number(expiry);
  if (typeof expiry !== 'string' || !Number.isSafeInteger(expiryMs)) return undefined;
  const isInSeconds = expiryMs < nowMs / 100 && expiryMs > nowMs / 2_000;
  const found = isInSeconds
    ? problem({
        ...parts,
        expected: `Unix milliseconds: ${clock}`,
        came: `${expiryMs}, which looks like seconds`,
        next: `Send Unix milliseconds, such as ${expiryMs * 1000}.`,
      })
    : problem({
        ...parts,
        expected: `a time ${expiryMs > nowMs ? 'that is not so far ahead' : 'that has not passed'}: ${clock}`,
        came: `${expiryMs}, ${spanOf(Math.abs(nowMs - expiryMs))} ${expiryMs > nowMs ? 'ahead' : 'ago'}`,
        next: `Send ${expiryMs > nowMs ? 'an earlier' : 'a later'} time in Unix milliseconds, and sign again.`,
      });
  return because('validation', [found], { evidence: { expiry_ms: expiryMs, now_ms: nowMs }, repairs });
}

/** Formats a duration in the largest unit that fits. */
function spanOf(ms: number): string {
  const units = [
    [86_400_000, 'day'],
    [3_600_000, 'hour'],
    [60_000, 'minute'],
    [1_000, 'second'],
  ] as const;
  const [size, name] = units.find(([each]) => ms >= each) ?? [1, 'millisecond'];
  const count = Math.floor(ms / size);
  return `${count} ${name}${count === 1 ? '' : 's'}`;
}

function whyTooMany({ responseHeaders, operation }: RefusedRequest): Why | undefined {
  const seconds = Number(responseHeaders['retry-after']);
  if (!Number.isFinite(seconds)) return undefined;
  const found = problem({
    subject: operation === undefined ? 'the rate limit' : `the rate limit of \`${operation}\``,
    expected: 'fewer requests per minute',
    came: 'more requests than the limit allows',
    next: `Wait ${seconds} s; \`--rate-limit\` sets the limit of a sandbox.`,
  });
  return because('fault', [found], {
    evidence: { retry_after_seconds: seconds },
    repairs: [repeat(`Send again, after ${seconds} s`, {})],
  });
}

const MAX_HEADER = 100;

/** Explains a body with a content coding or media type that the server does not accept. */
export function whyMediaType({ headers }: RefusedRequest): Why {
  const encoding = headers['content-encoding'];
  const type = cut(String(headers['content-type'] ?? ''), MAX_HEADER);
  const isJson = /^application\/json *(;|$)/i.test(type);
  if (isJson && encoding !== undefined && encoding !== 'identity') {
    const coding = cut(String(encoding), MAX_HEADER);
    const found = problem({
      subject: 'the header `content-encoding`',
      expected: 'a body that is not compressed',
      came: quote(coding),
      next: 'Send the body as it is, without the header `content-encoding`.',
      at: inHeader('content-encoding'),
    });
    return because('validation', [found], { evidence: { content_encoding: coding } });
  }
  const found = problem({
    subject: 'the header `content-type`',
    expected: '`application/json`, in UTF-8',
    came:
      type === '' ? 'no such header' : isJson ? `${quote(type)}, which names another charset` : quote(type),
    next: 'Send `content-type: application/json` and the text as UTF-8.',
    at: inHeader('content-type'),
  });
  const headersOfRepair = { 'content-type': 'application/json' };
  return because('validation', [found], {
    evidence: { content_type: type },
    repairs: [repeat('Send again as `application/json`', { changes: { headers: headersOfRepair } })],
  });
}

// The exact error texts that published clients rely on.
const reusedKey = /^Idempotency key was reused/;
const keyInProgress = /^Previous request with matching idempotency key/;

/** Explains an idempotency key that belongs to another request, or to one that still runs. */
export function whyIdempotency(message: string, { headers }: RefusedRequest): Why | undefined {
  const name = Object.keys(headers).find((each) => each.endsWith('-idempotency-key')) ?? 'idempotency-key';
  const subject = `the header \`${name}\``;
  const at = inHeader(name);
  if (reusedKey.test(message)) {
    const found = problem({
      subject,
      expected: 'the same request as the first one with this key, or a new key',
      came: 'a request with another path or body',
      next: 'Send the same request again, or use a new key.',
      at,
    });
    return because('idempotency', [found], {
      repairs: [repeat('Send again with a new key', { changes: { fresh_idempotency_key: true } })],
    });
  }
  if (!keyInProgress.test(message)) return undefined;
  const found = problem({
    subject,
    expected: 'a key whose first request has ended',
    came: 'one whose first request is still running',
    next: 'Wait for the response of the first request, then repeat this one.',
    at,
  });
  // Without its key, the request could be executed twice.
  const changes = { headers: { [name]: String(headers[name]) } };
  return because('idempotency', [found], { repairs: [repeat('Send the request again', { changes })] });
}
