import type { Finding } from './judge-exchange.ts';

/** The parts of a response that two servers can have in common. Ids and times differ. */
export interface ComparedAnswer {
  readonly status: number;
  /** The parsed body. */
  readonly body: unknown;
}

const MAX_DIFFERENCES = 20;
const MAX_DEPTH = 64;

/** Finds differences in status, error code and shape. The shape is the set of properties and their types. */
export function compareAnswers(place: string, target: ComparedAnswer, sandbox: ComparedAnswer): Finding[] {
  const differs = (message: string): Finding => ({
    rule: 'sandbox-differs',
    severity: 'error',
    place,
    message,
  });
  if (target.status !== sandbox.status) {
    return [differs(`the status is ${target.status}, in the sandbox ${sandbox.status}`)];
  }
  const [code, codeOfSandbox] = [codeOf(target), codeOf(sandbox)];
  if (code !== codeOfSandbox)
    return [differs(`the code is \`${code}\`, in the sandbox \`${codeOfSandbox}\``)];
  const [shape, shapeOfSandbox] = [shapeOf(target.body), shapeOf(sandbox.body)];
  const pointers = [...new Set([...shape.keys(), ...shapeOfSandbox.keys()])];
  return pointers
    .filter((pointer) => isComparable(pointer, shape) && isComparable(pointer, shapeOfSandbox))
    .filter((pointer) => !isAlike(shape.get(pointer), shapeOfSandbox.get(pointer)))
    .slice(0, MAX_DIFFERENCES)
    .map((pointer) =>
      differs(
        `${pointer || 'body'} is ${typesIn(shape.get(pointer))}, in the sandbox ${typesIn(shapeOfSandbox.get(pointer))}`,
      ),
    );
}

function codeOf({ body }: ComparedAnswer): string {
  return String((body as { code?: unknown } | null | undefined)?.code ?? 'none');
}

/** Returns the types at each JSON pointer. All items of a list are at `/-`. */
function shapeOf(body: unknown): Map<string, Set<string>> {
  const shape = new Map<string, Set<string>>();
  const visit = (value: unknown, pointer: string, depth: number): void => {
    const type = value === null ? 'null' : Array.isArray(value) ? 'list' : typeof value;
    shape.set(pointer, (shape.get(pointer) ?? new Set()).add(type));
    if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return;
    if (Array.isArray(value)) for (const item of value) visit(item, `${pointer}/-`, depth + 1);
    else for (const [name, inner] of Object.entries(value)) visit(inner, `${pointer}/${name}`, depth + 1);
  };
  visit(body, '', 0);
  // A sandbox adds these members to errors, in addition to the contract.
  for (const pointer of shape.keys())
    if (pointer.startsWith('/data') && codeOf({ status: 0, body }) !== 'none') shape.delete(pointer);
  return shape;
}

/**
 * Whether both responses could have a value at a pointer. A pointer into null, an empty list or a missing object
 * cannot.
 */
function isComparable(pointer: string, shape: ReadonlyMap<string, ReadonlySet<string>>): boolean {
  if (shape.has(pointer)) return true;
  const end = pointer.lastIndexOf('/');
  const around = shape.get(pointer.slice(0, end));
  return around !== undefined && !around.has('null') && pointer.slice(end) !== '/-';
}

/** Whether two sets of types are compatible. A nullable value is compatible with null. */
function isAlike(one: ReadonlySet<string> | undefined, other: ReadonlySet<string> | undefined): boolean {
  if (one === undefined || other === undefined) return false;
  if (one.has('null') || other.has('null')) return true;
  return one.size === other.size && [...one].every((type) => other.has(type));
}

function typesIn(types: ReadonlySet<string> | undefined): string {
  return types === undefined ? 'absent' : [...types].join(' or ');
}
