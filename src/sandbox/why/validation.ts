import type { BodyChange, FaultPlace, Problem, RefusedRequest, Repair, Why } from '../../ports/refusals.ts';
import { nearestName } from './nearest.ts';
import { because, cut, inHeader, listOf, problem, quote, repeat } from './problem.ts';

interface Issue {
  readonly in: string;
  readonly pointer: string;
  readonly message: string;
}

/** A problem, with the change of the body that repairs it if there is no doubt about it. */
interface Finding {
  readonly problem: Problem;
  readonly evidence?: Record<string, unknown>;
  readonly change?: BodyChange;
}

const MAX_NAMES = 10;
const MAX_HEADER = 100;

/** Explains requests that do not match the API document. */
export function whyInvalid(refused: RefusedRequest): Why | undefined {
  const { code, message, data, path } = refused;
  if (code === 'unsupported_media_type') return whyMediaType(refused);
  if (code !== 'invalid_data') return undefined;
  const reused = whyIdempotency(message, refused);
  if (reused !== undefined) return reused;
  const [first, ...others] = issuesIn(data);
  if (first === undefined) return undefined;
  // If the issues are alternatives, such as those of a union, the message names only the first, which alone is
  // explained.
  const areAll = others[0] !== undefined && message.includes(`${others[0].pointer}: `);
  const issues = areAll ? [first, ...others] : [first];
  const found = issues.map((issue) => findingOf(issue, issues, refused));
  const evidence = found[0]?.evidence ?? { in: first.in, pointer: first.pointer, path };
  return because(
    'validation',
    found.map((each) => each.problem),
    {
      evidence,
      repairs: repairOf(found),
      ...combinedTexts(issues, refused),
    },
  );
}

/**
 * Returns one step that fixes all problems, with a summary if there is one. Returns an empty object if each problem
 * needs a step of its own.
 */
function combinedTexts(
  issues: readonly Issue[],
  refused: RefusedRequest,
): { readonly summary?: string; readonly step?: string } {
  const document = documentOf(refused.path);
  const summary = summaryOf(issues, refused);
  if (summary !== undefined) return { summary, step: `Add them; ${document} has examples.` };
  const areWrong = issues.every(({ in: part, message }) => part === 'body' && message.startsWith('must be '));
  const hasNearest = issues.some((issue) => nearestValue(issue, refused.body) !== undefined);
  if (issues.length < 2 || !areWrong || hasNearest) return {};
  const names = issues.slice(0, MAX_NAMES).map(({ pointer }) => quote(pointer === '' ? 'the body' : pointer));
  const more = issues.length - names.length;
  return {
    step: `Change ${listOf(more > 0 ? [...names, `${more} more`] : names)}; ${document} has examples.`,
  };
}

function findingOf(issue: Issue, issues: readonly Issue[], refused: RefusedRequest): Finding {
  if (issue.in === 'body' && issue.message === 'is required') return missing(issue, issues, refused);
  if (issue.in === 'body' && issue.message === 'unknown property') return unknown(issue, issues, refused);
  const subject = placeOf(issue);
  const document = documentOf(refused.path);
  const at = faultPlace(issue);
  const nearest = nearestValue(issue, refused.body);
  if (nearest !== undefined) {
    const allowed = wordsOf(issue.message);
    return {
      problem: problem({
        ...{ subject, expected: allowed, came: quote(nearest.given), at },
        next: `Did you mean \`${nearest.value}\`?`,
      }),
      evidence: { in: issue.in, pointer: issue.pointer, path: refused.path, nearest: nearest.value },
      change: { op: 'replace', path: issue.pointer, value: nearest.value },
    };
  }
  return {
    problem: problem({
      ...{ subject, expected: wordsOf(issue.message), came: cameOf(issue, refused), at },
      text: textOf(issue, refused),
      next: `Change ${issue.pointer === '' ? subject : quote(nameOf(issue.pointer))}; ${document} has examples.`,
    }),
  };
}

/** Returns what the API document expects, in words that can follow "expected". */
function wordsOf(message: string): string {
  return message
    .replace(/\.$/, '')
    .replaceAll(/(^|, or )must (?:be|have|match) /g, '$1')
    .replace(/^is required$/, 'a value');
}

/**
 * Returns the text about a fault that the message itself explains. Undefined for a keyword of the schema, for which the
 * text is built from the expected and the received value.
 */
function textOf(issue: Issue, refused: RefusedRequest): string | undefined {
  const { message } = issue;
  if (/^must (?:be|have|match) /.test(message) || message === 'is required') return undefined;
  const subject = placeOf(issue);
  const sentence = subject.charAt(0).toUpperCase() + subject.slice(1);
  const isPredicate = /^(?:must|is|has|matches|expected|unknown value) /.test(message);
  const said = message.replace(/\.$/, '').replace(/^unknown value/, 'has the unknown value');
  const came = cameOf(issue, refused);
  const isTold = issue.in !== 'body' || came === 'nothing' || /got |no |than /.test(message);
  const got = isTold ? '' : ` It is ${came}.`;
  return `${sentence}${isPredicate && !message.startsWith('expected') ? ' ' : ': '}${said}.${got}`;
}

/** Describes what came in this place. Never quotes a string, because it may be secret. */
function cameOf(issue: Issue, { body }: RefusedRequest): string {
  if (issue.in !== 'body') return issue.message === 'is required' ? 'nothing' : 'another value';
  const value = valueAt(body, namesOf(issue.pointer));
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (typeof value === 'string')
    return value === '' ? 'an empty string' : `a string of length ${value.length}`;
  if (Array.isArray(value)) return `a list of length ${value.length}`;
  if (typeof value === 'object') return 'an object';
  return `${typeof value === 'number' ? 'the number ' : ''}${String(value)}`;
}

function documentOf(path: string): string {
  return path.startsWith('/_sandbox/') ? 'GET /_sandbox/openapi.json' : '/docs';
}

function placeOf({ in: part, pointer }: Issue): string {
  if (part !== 'body') return `\`${nameOf(pointer)}\` in the ${part}`;
  return pointer === '' ? 'the body' : `\`${pointer}\` in the body`;
}

function faultPlace({ in: part, pointer }: Issue): FaultPlace {
  return { in: part === 'header' ? 'headers' : (part as FaultPlace['in']), pointer };
}

const SHOWN_VALUE = 80;

/**
 * Returns the sent string and the allowed value that is most similar to it. Undefined if no allowed value is similar.
 */
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
  const given = valueAt(body, namesOf(pointer));
  if (typeof given !== 'string' || given.length > SHOWN_VALUE) return undefined;
  const value = nearestName(given, allowed);
  return value === undefined ? undefined : { given, value };
}

/** Explains a body with a content coding or media type that the server does not accept. */
function whyMediaType({ headers }: RefusedRequest): Why {
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

function whyIdempotency(message: string, { headers }: RefusedRequest): Why | undefined {
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

/** Explains a missing property, and names the property that was sent in its place by mistake, if there is one. */
function missing(issue: Issue, issues: readonly Issue[], { body, path }: RefusedRequest): Finding {
  const { pointer } = issue;
  const name = nameOf(pointer);
  const sent = membersAround(pointer, body);
  const strange = new Set(
    issues.filter(({ message }) => message === 'unknown property').map((each) => each.pointer),
  );
  const around = pointer.slice(0, pointer.lastIndexOf('/'));
  const candidates = strange.size === 0 ? sent : sent.filter((each) => strange.has(`${around}/${each}`));
  const nearest = nearestName(
    name,
    candidates.filter((each) => each !== name),
  );
  const parts = { subject: placeOf(issue), expected: 'a value', at: faultPlace(issue) };
  if (nearest !== undefined) {
    return {
      problem: problem({
        ...parts,
        came: `nothing; the body has \`${nearest}\``,
        text: `${parts.subject.replace(' in', ' is missing in')}, which has \`${nearest}\`.`,
        next: `Did you mean \`${name}\`?`,
      }),
      evidence: { pointer, nearest },
      change: { op: 'move', from: `${around}/${escapePointer(nearest)}`, path: pointer },
    };
  }
  const names = sent.slice(0, MAX_NAMES);
  return {
    problem: problem({
      ...parts,
      came: `nothing; ${membersText(names)}`,
      next: `Add \`${name}\`; ${documentOf(path)} has examples.`,
    }),
    evidence: { pointer, properties: names },
  };
}

/** Explains a property that the API document does not have, unless it is a missing property that was misspelled. */
function unknown(issue: Issue, issues: readonly Issue[], { body, path }: RefusedRequest): Finding {
  const { pointer } = issue;
  const name = nameOf(pointer);
  const around = pointer.slice(0, pointer.lastIndexOf('/'));
  const wanted = issues
    .filter((each) => each.message === 'is required' && each.pointer.startsWith(`${around}/`))
    .map((each) => nameOf(each.pointer));
  const meant = nearestName(name, wanted);
  const found = problem({
    subject: placeOf(issue),
    expected: meant === undefined ? 'a property of the contract' : `\`${meant}\``,
    came: 'a name that the contract does not have',
    next:
      meant === undefined
        ? `Remove \`${name}\`, or check its spelling: ${documentOf(path)} lists the properties.`
        : `Did you mean \`${meant}\`?`,
    at: faultPlace(issue),
  });
  const isThere = valueAt(body, namesOf(pointer)) !== undefined;
  return {
    problem: found,
    evidence: { in: issue.in, pointer },
    ...(meant === undefined && isThere ? { change: { op: 'remove', path: pointer } } : {}),
  };
}

/** Describes several missing properties of one object in one sentence. Returns undefined for other issues. */
function summaryOf(issues: readonly Issue[], { body }: RefusedRequest): string | undefined {
  const parents = new Set(issues.map(({ pointer }) => pointer.slice(0, pointer.lastIndexOf('/'))));
  const areMissing = issues.every((each) => each.in === 'body' && each.message === 'is required');
  if (issues.length < 2 || !areMissing || parents.size > 1) return undefined;
  const names = issues.slice(0, MAX_NAMES).map(({ pointer }) => `\`${nameOf(pointer)}\``);
  const [parent = ''] = parents;
  const where = parent === '' ? 'The body' : `\`${parent}\` in the body`;
  const sent = membersAround(issues[0]!.pointer, body);
  const more = issues.length - names.length;
  const lacking = listOf(more > 0 ? [...names, `${more} more`] : names);
  return `${where}: expected ${lacking}, got none of them; ${membersText(sent.slice(0, MAX_NAMES))}.`;
}

/** Returns one repair that makes all changes of the body, or none if no problem has a change. */
function repairOf(found: readonly Finding[]): Repair[] {
  const changes = found.flatMap(({ change }) => change ?? []);
  if (changes.length === 0) return [];
  return [repeat(`Send again: ${changes.map(titleOf).join(', ')}`, { changes: { body: changes } })];
}

function titleOf({ op, path, from, value }: BodyChange): string {
  const name = `\`${nameOf(path)}\``;
  if (op === 'move') return `\`${nameOf(from ?? '')}\` as ${name}`;
  return op === 'remove' ? `without ${name}` : `${name} is \`${String(value)}\``;
}

function membersText(names: readonly string[]): string {
  return names.length === 0
    ? 'the object is empty'
    : `the object has ${listOf(names.map((name) => quote(name)))}`;
}

function membersAround(pointer: string, body: unknown): string[] {
  const parent = valueAt(body, namesOf(pointer).slice(0, -1));
  return typeof parent === 'object' && parent !== null ? Object.keys(parent) : [];
}

function issuesIn({ issues }: RefusedRequest['data']): readonly Issue[] {
  return Array.isArray(issues) ? (issues as Issue[]) : [];
}

function namesOf(pointer: string): string[] {
  return pointer.split('/').slice(1).map(unescapePointer);
}

function nameOf(pointer: string): string {
  return unescapePointer(pointer.split('/').at(-1) ?? '');
}

// Decodes a reference token of a JSON pointer (RFC 6901 section 3).
function unescapePointer(name: string): string {
  return name.replaceAll('~1', '/').replaceAll('~0', '~');
}

function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

function valueAt(value: unknown, names: readonly string[]): unknown {
  let at = value;
  for (const name of names) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Record<string, unknown>)[name];
  }
  return at;
}
