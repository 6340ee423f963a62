import type { RefusedRequest, Repair, Why } from '../../ports/refusals.ts';
import { editsBetween } from './nearest.ts';
import { because, cut, listOf, problem, quote, repeat } from './problem.ts';

/** The fields of an operation that are compared with a path. */
export interface KnownOperation {
  readonly method: string;
  /** The path with parameters in braces. */
  readonly path: string;
  readonly id: string;
  readonly security: string;
}

interface Facts {
  readonly operations: readonly KnownOperation[];
}

/** A path counts as misspelled up to this many edits per character. */
const MAX_EDITS = 0.34;
const MAX_SEGMENTS = 20;
const MAX_SEGMENT_LENGTH = 60;

/** Explains a path that matches no operation. */
export function whyUnknownPath(refused: RefusedRequest, { operations }: Facts): Why | undefined {
  const { code, operation, path, method, responseHeaders } = refused;
  if (code === 'method_not_allowed') {
    const allow = String(responseHeaders.allow ?? '').split(', ');
    const found = problem({
      subject: `the path ${quote(path)}`,
      expected: `the method ${listOf(allow, 'or')}`,
      came: cut(method, 20),
      next: `Use ${listOf(allow, 'or')}, or another path; /docs lists the operations.`,
      at: { in: 'method', pointer: '' },
    });
    return because('validation', [found], { evidence: { allow } });
  }
  if (code !== 'not_found' || operation !== undefined) return undefined;
  const nearest = nearestOperation(method, path, operations);
  const name = nearest === undefined ? undefined : `${nearest.method} ${nearest.path}`;
  const found = problem({
    subject: `the path ${quote(path)}`,
    expected: 'the path of an operation',
    came: 'a path that no operation has',
    text: `No operation has the path ${quote(path)}.`,
    next:
      name === undefined ? 'Look for the operation in /docs, which lists them all.' : `Did you mean ${name}?`,
    at: { in: 'path', pointer: '' },
  });
  return because('validation', [found], {
    evidence: name === undefined ? { path } : { path, nearest: name },
    repairs: nearest === undefined ? [] : repairOf(nearest, refused),
  });
}

function repairOf(nearest: KnownOperation, { method, path }: RefusedRequest): Repair[] {
  const meant = filledPath(nearest.path, path);
  if (meant.includes('//')) return [];
  const changes = { path: meant, ...(nearest.method === method ? {} : { method: nearest.method }) };
  return [repeat(`Send it again to ${nearest.method} ${meant}`, { changes })];
}

/** Returns the path of an operation, with its parameters taken from a similar path, which may lack the version. */
function filledPath(template: string, path: string): string {
  const known = segmentsOf(template);
  const sent = segmentsOf(path);
  const given = sent.length === known.length ? sent : ['', ...sent];
  return known.map((name, index) => (name.startsWith('{') ? (given[index] ?? '') : name)).join('/');
}

/**
 * Returns the operation whose path is most similar, and among equally similar ones the one with the same method.
 * Undefined if no path is similar enough.
 */
function nearestOperation(
  method: string,
  path: string,
  operations: readonly KnownOperation[],
): KnownOperation | undefined {
  const spellings = [path, `/v1${path}`].map(segmentsOf);
  let nearest: { operation: KnownOperation; score: number } | undefined;
  for (const operation of operations) {
    const template = segmentsOf(operation.path);
    const edits = Math.min(...spellings.map((spelling) => editsOf(spelling, template)));
    if (edits > path.length * MAX_EDITS) continue;
    const score = edits + (operation.method === method ? 0 : 0.5);
    if (nearest === undefined || score < nearest.score) nearest = { operation, score };
  }
  return nearest?.operation;
}

/** Counts the edits that turn a path into the template. A parameter matches any segment that is not empty. */
function editsOf(segments: readonly string[], template: readonly string[]): number {
  if (segments.length !== template.length) return Number.POSITIVE_INFINITY;
  let edits = 0;
  for (const [index, known] of template.entries()) {
    const given = segments[index]!;
    // A literal is a better match than a parameter, because a parameter matches any segment.
    edits += known.startsWith('{')
      ? given === ''
        ? Number.POSITIVE_INFINITY
        : 0.1
      : editsBetween(given, known);
  }
  return edits;
}

function segmentsOf(path: string): string[] {
  return path
    .replace(/(?<!\/)\/+$/, '')
    .split('/', MAX_SEGMENTS)
    .map((segment) => segment.slice(0, MAX_SEGMENT_LENGTH));
}
