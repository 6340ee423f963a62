import type { BodyChange, FaultPlace, Problem, RefusedRequest, Repair, Why } from '../../ports/refusals.ts';
import type { BodyShapes } from '../generated/validate-function.ts';
import {
  type Correction,
  chainOfTransaction,
  changeOf,
  correctedValue,
  kindsAt,
  meantAlternative,
} from './corrected-value.ts';
import { whyIdempotency, whyMediaType } from './credentials.ts';
import { nearestName } from './nearest.ts';
import { because, listOf, problem, quote, repeat } from './problem.ts';

interface Facts {
  /** The shapes of bodies, which have the kinds of objects. Undefined for the control plane. */
  readonly shapes?: BodyShapes;
}

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

/** Explains requests that do not match the API document. */
export function whyInvalid(refused: RefusedRequest, facts: Facts = {}): Why | undefined {
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
  const alternative = areAll ? undefined : alternativeOf([first, ...others], refused);
  const found =
    alternative === undefined
      ? issues.map((issue) => findingOf(issue, issues, refused, facts))
      : [alternative];
  const evidence = found[0]?.evidence ?? { in: first.in, pointer: first.pointer, path };
  return because(
    'validation',
    found.map((each) => each.problem),
    {
      evidence,
      repairs: repairOf(found),
      ...combinedTexts(issues, found, refused),
    },
  );
}

/**
 * Returns one step that fixes all problems, with a summary if there is one. Returns an empty object if each problem
 * needs a step of its own.
 */
function combinedTexts(
  issues: readonly Issue[],
  found: readonly Finding[],
  refused: RefusedRequest,
): { readonly summary?: string; readonly step?: string } {
  const document = documentOf(refused.path);
  const summary = summaryOf(issues, refused);
  if (summary !== undefined) return { summary, step: `Add them; ${document} has examples.` };
  const areWrong = issues.every(({ in: part, message }) => part === 'body' && message.startsWith('must be '));
  const hasNearest = found.some(({ change }) => change !== undefined);
  if (issues.length < 2 || !areWrong || hasNearest) return {};
  const names = issues.slice(0, MAX_NAMES).map(({ pointer }) => quote(pointer === '' ? 'the body' : pointer));
  const more = issues.length - names.length;
  return {
    step: `Change ${listOf(more > 0 ? [...names, `${more} more`] : names)}; ${document} has examples.`,
  };
}

function findingOf(
  issue: Issue,
  issues: readonly Issue[],
  refused: RefusedRequest,
  { shapes }: Facts,
): Finding {
  if (issue.in === 'body' && issue.message === 'is required') return missing(issue, issues, refused);
  if (issue.in === 'body' && issue.message === 'unknown property') return unknown(issue, issues, refused);
  const subject = placeOf(issue);
  const document = documentOf(refused.path);
  const at = faultPlace(issue);
  const correction = correctionOf(issue, refused, shapes);
  if (correction !== undefined) {
    const { expected = wordsOf(issue.message), came, next } = correction;
    const change = changeOf(issue.pointer, correction);
    const evidence = { in: issue.in, pointer: issue.pointer, path: refused.path };
    return {
      problem: problem({ subject, expected, came, next, at }),
      evidence: change === undefined ? evidence : { ...evidence, nearest: change.value },
      ...(change === undefined ? {} : { change }),
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
    .replace('the pattern ^0x[0-9a-fA-F]*$', 'hex that begins with `0x`')
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

function correctionOf(
  { in: part, pointer, message }: Issue,
  { body, operation }: RefusedRequest,
  shapes: BodyShapes | undefined,
): Correction | undefined {
  if (part !== 'body') return undefined;
  const names = namesOf(pointer);
  const kinds = shapes && kindsAt(names, operation, shapes);
  return correctedValue({ pointer, name: nameOf(pointer), given: valueAt(body, names), message }, kinds);
}

/**
 * Explains an object that has none of the members by which the alternatives of a union differ. Returns undefined for
 * other issues.
 */
function alternativeOf(issues: readonly Issue[], { body, path }: RefusedRequest): Finding | undefined {
  const [first] = issues;
  if (first?.in !== 'body') return undefined;
  const around = parentOf(first.pointer);
  const wanted = issues
    .filter(({ pointer, message }) => message === 'is required' && parentOf(pointer) === around)
    .map(({ pointer }) => nameOf(pointer));
  if (wanted.length < 2 || first.message !== 'is required') return undefined;
  const sent = (valueAt(body, namesOf(around)) ?? {}) as Record<string, unknown>;
  const meant = meantAlternative(sent, wanted);
  const names = listOf(
    wanted.map((name) => quote(name)),
    'or',
  );
  const parts = {
    subject: placeOf({ ...first, pointer: around }),
    expected: names,
    came: objectText(Object.keys(sent).slice(0, MAX_NAMES)),
    at: faultPlace({ ...first, pointer: around }),
  };
  const evidence = { pointer: around, properties: Object.keys(sent).slice(0, MAX_NAMES) };
  if (meant === undefined)
    return {
      problem: problem({ ...parts, next: `Add ${names}; ${documentOf(path)} has examples.` }),
      evidence,
    };
  return {
    problem: problem({ ...parts, next: `Did you mean \`${meant.to}\`?` }),
    evidence: { ...evidence, nearest: meant.to },
    change: {
      op: 'move',
      from: `${around}/${escapePointer(meant.from)}`,
      path: `${around}/${escapePointer(meant.to)}`,
    },
  };
}

function objectText(names: readonly string[]): string {
  return names.length === 0
    ? 'an empty object'
    : `an object with ${listOf(names.map((name) => quote(name)))}`;
}

/** Explains a missing property, and names the property that was sent in its place by mistake, if there is one. */
function missing(issue: Issue, issues: readonly Issue[], { body, path }: RefusedRequest): Finding {
  const { pointer } = issue;
  const name = nameOf(pointer);
  const sent = membersAround(pointer, body);
  const strange = new Set(
    issues.filter(({ message }) => message === 'unknown property').map((each) => each.pointer),
  );
  const around = parentOf(pointer);
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
  const caip2 = pointer === '/caip2' ? chainOfTransaction(body) : undefined;
  if (caip2 !== undefined) {
    return {
      problem: problem({
        ...parts,
        expected: 'the CAIP-2 id of the chain',
        came: 'nothing; the transaction has `chain_id`',
        next: `Add \`caip2\`: did you mean \`${caip2}\`, the chain of \`chain_id\`?`,
      }),
      evidence: { pointer, nearest: caip2 },
      change: { op: 'add', path: pointer, value: caip2 },
    };
  }
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
  const around = parentOf(pointer);
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
  const parents = new Set(issues.map(({ pointer }) => parentOf(pointer)));
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
  if (op === 'remove') return `without ${name}`;
  const isNumeric = typeof value === 'string' && /^[\d.]+$/.test(value);
  return `${name} is \`${isNumeric ? `"${value}"` : String(value)}\``;
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

function parentOf(pointer: string): string {
  return pointer.slice(0, pointer.lastIndexOf('/'));
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
