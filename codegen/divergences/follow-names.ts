import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Node, parseSync } from 'oxc-parser';

/** A declaration at the top level of a file: `src/a.ts#name`. */
export type Place = string;

interface ParsedFile {
  /**
   * The place where each imported value is declared, by its local name. Types are omitted, because they have no
   * effect at runtime.
   */
  readonly imports: ReadonlyMap<string, Place>;
  /** The file that is imported as a whole, by its local name. */
  readonly namespaces: ReadonlyMap<string, string>;
  readonly declarations: ReadonlyMap<string, Node>;
}

/** The names to which a declaration refers. */
interface Mentioned {
  readonly places: ReadonlySet<Place>;
  /** The wanted names that it reads from an object. */
  readonly members: ReadonlySet<string>;
}

/** Everything that some declarations can run. */
export interface Reached {
  readonly places: ReadonlySet<Place>;
  readonly members: ReadonlySet<string>;
}

/**
 * Follows the names in declarations to the declarations of these names, through all files. `members` are the members
 * to search for, with the objects from which they are read; undefined means any object.
 *
 * It finds too much rather than too little: every mentioned name counts as used, whatever the values of a request
 * are.
 */
export function nameFollower(root: string, members: ReadonlyMap<string, RegExp | undefined>) {
  const files = new Map<string, ParsedFile>();
  const mentioned = new Map<Place, Mentioned>();

  const fileAt = (path: string): ParsedFile => {
    let file = files.get(path);
    if (file === undefined) {
      file = path.endsWith('.ts')
        ? parseFile(root, path)
        : { imports: new Map(), namespaces: new Map(), declarations: new Map() };
      files.set(path, file);
    }
    return file;
  };

  const mentionedAt = (place: Place): Mentioned => {
    let found = mentioned.get(place);
    if (found === undefined) {
      found = readMentioned(place, fileAt(pathOf(place)), members);
      mentioned.set(place, found);
    }
    return found;
  };

  return {
    /** Returns whether a file declares a name that can be followed. */
    declares: (path: string, name: string): boolean => fileAt(path).declarations.has(name),
    /**
     * Returns everything that the declarations in `start` can run. The declaration `until` is reached, but not
     * followed.
     */
    from(start: readonly Place[], until?: Place): Reached {
      const places = new Set(start);
      const found = new Set<string>();
      // An iteration over a set includes the elements that are added during the iteration.
      for (const place of places) {
        if (place === until) continue;
        const next = mentionedAt(place);
        for (const member of next.members) found.add(member);
        for (const other of next.places) places.add(other);
      }
      return { places, members: found };
    },
  };
}

export function pathOf(place: Place): string {
  return place.slice(0, place.lastIndexOf('#'));
}

function parseFile(root: string, path: string): ParsedFile {
  const { program } = parseSync(path, readFileSync(join(root, path), 'utf8'));
  const imports = new Map<string, Place>();
  const namespaces = new Map<string, string>();
  const declarations = new Map<string, Node>();
  for (const statement of program.body) {
    if (statement.type === 'ImportDeclaration') {
      if (statement.importKind === 'type' || !statement.source.value.startsWith('.')) continue;
      const from = join(dirname(path), statement.source.value);
      for (const specifier of statement.specifiers) {
        if (specifier.type === 'ImportNamespaceSpecifier') namespaces.set(specifier.local.name, from);
        if (specifier.type !== 'ImportSpecifier' || specifier.importKind === 'type') continue;
        const { imported } = specifier;
        imports.set(
          specifier.local.name,
          `${from}#${imported.type === 'Literal' ? imported.value : imported.name}`,
        );
      }
      continue;
    }
    const declared = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement;
    if (declared === null) continue;
    for (const [name, node] of namesIn(declared)) declarations.set(name, node);
  }
  return { imports, namespaces, declarations };
}

/** Returns the names of values that a statement declares. */
function namesIn(node: Node): [string, Node][] {
  if (node.type === 'FunctionDeclaration' || node.type === 'ClassDeclaration') {
    return node.id === null ? [] : [[node.id.name, node]];
  }
  if (node.type !== 'VariableDeclaration') return [];
  return node.declarations.flatMap((declarator) => {
    const names: string[] = [];
    visit(declarator.id, (inner) => {
      if (inner.type === 'Identifier') names.push(inner.name);
    });
    return names.map((name): [string, Node] => [name, declarator]);
  });
}

function readMentioned(
  place: Place,
  { imports, namespaces, declarations }: ParsedFile,
  wanted: ReadonlyMap<string, RegExp | undefined>,
): Mentioned {
  const path = pathOf(place);
  const places = new Set<Place>();
  const members = new Set<string>();
  const declaration = declarations.get(place.slice(path.length + 1));
  if (declaration === undefined) return { places, members };
  visit(declaration, (node) => {
    if (node.type === 'Identifier') {
      const imported = imports.get(node.name);
      if (imported !== undefined) places.add(imported);
      else if (declarations.has(node.name)) places.add(`${path}#${node.name}`);
    }
    if (node.type === 'MemberExpression' && node.property.type === 'Identifier') {
      const { name } = node.property;
      if (wanted.has(name) && isFrom(node.object, wanted.get(name))) members.add(name);
      const from = node.object.type === 'Identifier' ? namespaces.get(node.object.name) : undefined;
      if (from !== undefined) places.add(`${from}#${name}`);
    }
    if (node.type === 'ObjectPattern') {
      for (const property of node.properties) {
        if (property.type !== 'Property' || property.key.type !== 'Identifier') continue;
        if (wanted.has(property.key.name)) members.add(property.key.name);
      }
    }
  });
  return { places, members };
}

function isFrom(object: Node, objects: RegExp | undefined): boolean {
  return objects === undefined || (object.type === 'Identifier' && objects.test(object.name));
}

/** The parts of a node that only contain types. */
const TYPES = new Set(['typeAnnotation', 'typeParameters', 'typeArguments', 'returnType']);

function visit(node: Node, see: (node: Node) => void): void {
  see(node);
  for (const [name, part] of Object.entries(node)) {
    if (TYPES.has(name)) continue;
    for (const inner of Array.isArray(part) ? part : [part]) if (isNode(inner)) visit(inner, see);
  }
}

function isNode(value: unknown): value is Node {
  return (
    typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string'
  );
}
