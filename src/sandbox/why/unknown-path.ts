import type { RefusedRequest, Why } from '../../ports/requests.ts';
import { editsBetween } from './nearest.ts';

/** The fields of an operation that concern its path. */
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

/** A path counts as misspelled if it needs at most this many edits per character. */
const MOST_EDITS = 0.34;
const MAX_SEGMENTS = 20;
const MAX_SEGMENT_LENGTH = 60;

/** Explains a path that matches no operation. */
export function whyUnknownPath(refused: RefusedRequest, { operations }: Facts): Why | undefined {
  const { code, operation, path, method, responseHeaders } = refused;
  if (code === 'method_not_allowed') {
    const allow = String(responseHeaders.allow ?? '');
    return {
      kind: 'validation',
      hint: `this path does not accept ${method}, only ${allow}`,
      evidence: { allow: allow.split(', ') },
    };
  }
  if (code !== 'not_found' || operation !== undefined) return undefined;
  const nearest = nearestOperation(method, path, operations);
  const hint =
    nearest === undefined
      ? 'no operation has this path; /docs lists them all'
      : `no operation has this path: did you mean ${nearest.method} ${nearest.path}?`;
  return {
    kind: 'validation',
    hint,
    evidence: nearest === undefined ? { path } : { path, nearest: `${nearest.method} ${nearest.path}` },
  };
}

/** Chooses the operation with the same method among equally similar operations. */
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
    if (edits > path.length * MOST_EDITS) continue;
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
    // A literal is more similar than a parameter, because a parameter matches any text.
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
