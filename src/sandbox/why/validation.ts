import type { RefusedRequest, Why } from '../../ports/requests.ts';
import { nearestName } from './nearest.ts';

interface Issue {
  readonly in: string;
  readonly pointer: string;
  readonly message: string;
}

const MAX_NAMES = 10;
const MAX_HEADER = 100;

/** Explains requests that do not match the contract. */
export function whyInvalid(refused: RefusedRequest): Why | undefined {
  const { code, message, data, body, path } = refused;
  if (code === 'unsupported_media_type') return whyMediaType(refused);
  if (code !== 'invalid_data') return undefined;
  const reused = whyIdempotency(message);
  if (reused !== undefined) return reused;
  const [issue] = issuesIn(data);
  if (issue === undefined) return undefined;
  const evidence = { in: issue.in, pointer: issue.pointer };
  if (issue.in === 'body' && issue.message === 'is required') return whyMissing(issue, body);
  if (issue.message === 'unknown property' && issue.in === 'body') {
    return {
      kind: 'validation',
      hint: `remove \`${nameOf(issue.pointer)}\`, or check its spelling: ${documentOf(path)} lists the properties`,
      evidence,
    };
  }
  const nearest = nearestValue(issue, body);
  if (nearest !== undefined) {
    return {
      kind: 'validation',
      hint: `${placeOf(issue)} is \`${nearest.given}\`: did you mean \`${nearest.value}\`?`,
      evidence: { ...evidence, path, nearest: nearest.value },
    };
  }
  // Messages of the contract's keywords continue a sentence, for example `must be a string`.
  const isPredicate = /^(?:must|is|has|matches|unknown value) /.test(issue.message);
  const said = issue.message.replace(/\.$/, '').replace(/^unknown value/, 'has the unknown value');
  return {
    kind: 'validation',
    hint: `${placeOf(issue)}${isPredicate ? ' ' : ': '}${said}; ${documentOf(path)} has examples`,
    evidence: { ...evidence, path },
  };
}

function documentOf(path: string): string {
  return path.startsWith('/_sandbox/') ? 'GET /_sandbox/openapi.json' : '/docs';
}

function placeOf({ in: part, pointer }: Issue): string {
  if (part !== 'body') return `\`${nameOf(pointer)}\` in the ${part}`;
  return pointer === '' ? 'the body' : `\`${pointer}\` in the body`;
}

const SHOWN_VALUE = 80;

/** Returns the allowed value that is most similar to the sent value. */
function nearestValue(
  { in: part, pointer, message }: Issue,
  body: unknown,
): { readonly given: string; readonly value: string } | undefined {
  if (part !== 'body') return undefined;
  const allowed = message
    .split(', or ')
    .flatMap(
      (said) =>
        /^must be one of (.+)$/.exec(said)?.[1]?.split(', ') ?? /^must be (\S+)$/.exec(said)?.[1] ?? [],
    );
  const given = valueAt(body, pointer.split('/').slice(1).map(unescapePointer));
  if (typeof given !== 'string' || given.length > SHOWN_VALUE) return undefined;
  const value = nearestName(given, allowed);
  return value === undefined ? undefined : { given, value };
}

/** Explains a body in a coding or a media type that the server does not read. */
function whyMediaType({ headers }: RefusedRequest): Why | undefined {
  const encoding = headers['content-encoding'];
  const type = String(headers['content-type'] ?? '').slice(0, MAX_HEADER);
  const isJson = /^application\/json *(;|$)/i.test(type);
  if (isJson && encoding !== undefined && encoding !== 'identity') {
    return {
      kind: 'validation',
      hint: 'send the body as it is, without the header `content-encoding`: compressed requests are not read',
      evidence: { content_encoding: String(encoding).slice(0, MAX_HEADER) },
    };
  }
  if (!isJson) return undefined;
  return {
    kind: 'validation',
    hint: `send \`content-type: application/json\` and the text as UTF-8: \`${type}\` names another charset`,
    evidence: { content_type: type },
  };
}

// These are the exact texts that published clients expect.
const reusedKey = /^Idempotency key was reused/;
const keyInProgress = /^Previous request with matching idempotency key/;

function whyIdempotency(message: string): Why | undefined {
  if (reusedKey.test(message)) {
    return {
      kind: 'idempotency',
      hint: 'this idempotency key was used for a request with another path or body: send the same request again, or use a new key',
      evidence: {},
    };
  }
  if (!keyInProgress.test(message)) return undefined;
  return {
    kind: 'idempotency',
    hint: 'the first request with this idempotency key is still running: wait for its response, then repeat this one',
    evidence: {},
  };
}

/** Explains a missing property, and names the sent property that was probably meant. */
function whyMissing({ pointer }: Issue, body: unknown): Why {
  const missing = nameOf(pointer);
  const parent = valueAt(body, pointer.split('/').slice(1, -1).map(unescapePointer));
  const sent = typeof parent === 'object' && parent !== null ? Object.keys(parent) : [];
  const nearest = nearestName(
    missing,
    sent.filter((name) => name !== missing),
  );
  if (nearest !== undefined) {
    return {
      kind: 'validation',
      hint: `the body has \`${nearest}\`: did you mean \`${missing}\`?`,
      evidence: { pointer, nearest },
    };
  }
  const names = sent.slice(0, MAX_NAMES);
  const given =
    names.length === 0
      ? 'the object is empty'
      : `the object has ${names.map((name) => `\`${name}\``).join(', ')}`;
  return {
    kind: 'validation',
    hint: `add \`${missing}\`; ${given}`,
    evidence: { pointer, properties: names },
  };
}

function issuesIn({ issues }: RefusedRequest['data']): readonly Issue[] {
  return Array.isArray(issues) ? (issues as Issue[]) : [];
}

function nameOf(pointer: string): string {
  return unescapePointer(pointer.split('/').at(-1) ?? '');
}

function unescapePointer(name: string): string {
  return name.replaceAll('~1', '/').replaceAll('~0', '~');
}

function valueAt(value: unknown, names: readonly string[]): unknown {
  let at = value;
  for (const name of names) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Record<string, unknown>)[name];
  }
  return at;
}
