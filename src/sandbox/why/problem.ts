import type { FaultPlace, Problem, RefusedRequest, Repair, Repetition, Why } from '../../ports/refusals.ts';
import type { KnownOperation } from './unknown-path.ts';

/** The parts of a problem. Without `text`, a sentence is built from the other parts. */
interface ProblemParts {
  /** The subject of a sentence. It begins in lower case, unless it is a name. */
  readonly subject: string;
  readonly expected: string;
  readonly came: string;
  /** One or more whole sentences. */
  readonly text?: string | undefined;
  /** One whole sentence. */
  readonly next: string;
  readonly at?: FaultPlace | undefined;
}

const MAX_TEXT = 600;
const MAX_NAME = 40;

/** Builds a problem. All explanations use one form of sentence, unless a rule provides a better one. */
export function problem({ subject, expected, came, text, next, at }: ProblemParts): Problem {
  const whole = text ?? `${capital(subject)}: expected ${expected}, got ${came}.`;
  return {
    subject,
    expected: cut(expected, MAX_TEXT),
    came: cut(came, MAX_TEXT),
    at_fault: at ?? null,
    text: cut(whole, MAX_TEXT),
    next_step: cut(next, MAX_TEXT),
  };
}

/** The optional parts of an explanation, in addition to its problems. */
interface Others {
  readonly evidence?: Why['evidence'];
  readonly repairs?: readonly Repair[];
  /** Replaces the texts of the problems in the hint, if one text describes them better together. */
  readonly summary?: string | undefined;
  /** Replaces the next steps of the problems. */
  readonly step?: string | undefined;
}

/** The maximum number of problems that the hint describes. Further problems are only counted. */
const MAX_DESCRIBED = 5;
const MAX_HINT = 1_500;

/** Builds an explanation. The hint contains the problems, then each distinct next step once. */
export function because(
  kind: Why['kind'],
  problems: readonly Problem[],
  { evidence = {}, repairs = [], summary, step }: Others = {},
): Why {
  const described = problems.slice(0, MAX_DESCRIBED);
  const more = problems.length - described.length;
  const texts = summary === undefined ? described.map(({ text }) => text) : [summary];
  if (more > 0 && summary === undefined) texts.push(`There are ${more} more problems.`);
  const steps = new Set(step === undefined ? described.map((each) => each.next_step) : [step]);
  return { kind, hint: cut([...texts, ...steps].join(' '), MAX_HINT), evidence, problems, repairs };
}

/** Returns a repair that sends the request again. */
export function repeat(title: string, repetition: Repetition): Repair {
  return { kind: 'repeat', title, repeat: repetition };
}

/** Returns the place of a header, as a JSON pointer. */
export function inHeader(name: string): FaultPlace {
  return { in: 'headers', pointer: `/${name}` };
}

/** Quotes a string as code, and shortens it if necessary. */
export function quote(text: string, most = 80): string {
  return `\`${cut(text, most)}\``;
}

/** Joins names for a sentence: `a`, `b` and `c`. */
export function listOf(names: readonly string[], last = 'and'): string {
  if (names.length < 2) return names.join('');
  return `${names.slice(0, -1).join(', ')} ${last} ${names.at(-1)}`;
}

export function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Shortens a public key for a sentence. Keys of one type differ only toward their end. */
export function shortKey(key: string): string {
  return key.length > 16 ? `${key.slice(0, 4)}…${key.slice(-6)}` : key;
}

/** Quotes an id, with the name of its resource before it if there is one: Alice (`fmfdj6yqly31huorjqzq38zc`). */
export function namedId(id: string, refused: Pick<RefusedRequest, 'resources'>): string {
  const name = nameOrId(id, refused);
  return name === quote(id) ? name : `${name} (${quote(id)})`;
}

/** Returns the name of a resource, or its quoted id if it has none. */
export function nameOrId(id: string, { resources }: Pick<RefusedRequest, 'resources'>): string {
  const name = plainText(resources?.names.get(id) ?? '');
  return name === '' ? quote(id) : cut(name, MAX_NAME);
}

/** Removes backticks, which mark code, and line breaks, which would break the sentence. */
function plainText(name: string): string {
  return name.replaceAll(/[\s`]+/g, ' ').trim();
}

/** Describes a key quorum by its name or by its members: "the key quorum of alice and bob (`fmfdj6yqly31huorjqzq38zc`)". */
export function quorumText(id: string, refused: Pick<RefusedRequest, 'resources'>): string {
  const { names, members } = refused.resources ?? {};
  const listed = plainText(members?.get(id) ?? '');
  return names?.has(id) === true || listed === ''
    ? `key quorum ${namedId(id, refused)}`
    : `the key quorum of ${listed} (${quote(id)})`;
}

/**
 * Describes the resource that a path is about, such as "wallet Alice (`ext_wal_alice`)". Returns undefined if the path
 * names none.
 */
export function resourceIn(
  refused: Pick<RefusedRequest, 'operation' | 'path' | 'resources'>,
  operations: readonly KnownOperation[],
): string | undefined {
  const { operation, path } = refused;
  const template = operations.find(({ id }) => id === operation)?.path.split('/') ?? [];
  const index = template.findLastIndex((segment) => segment.startsWith('{'));
  const value = path.split('/')[index];
  if (index === -1 || value === undefined || value === '') return undefined;
  const noun = template[index]!.slice(1, -1).replace(/_id$/, '').replaceAll('_', ' ');
  return `${noun} ${namedId(decodeURIComponent(value), refused)}`;
}

// Formats a time in ISO 8601. A time after the year 275760, which JavaScript cannot represent, stays a number.
export function timeOf(ms: number): string {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : String(ms);
}
