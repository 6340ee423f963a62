import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { parseDocument } from 'yaml';
import type { Contract } from './contracts.ts';
import {
  type CatalogueEntry,
  type Components,
  ContractError,
  type Document,
  type FamilyDocument,
  type Links,
  operationObjects,
  type PathItem,
  type Tag,
} from './document.ts';

/** The merged family documents, before errors are expanded. */
export interface Bundle {
  readonly document: Document;
  readonly catalogue: Readonly<Record<string, CatalogueEntry>>;
  readonly brandedProperties: readonly string[];
  readonly links: Links;
}

/** Parsed files by path relative to the root. */
type FileCache = Map<string, FamilyDocument>;

function readFamily(root: string, path: string): FamilyDocument {
  const parsed = parseDocument(readFileSync(join(root, path), 'utf8'), { version: '1.2', uniqueKeys: true });
  if (parsed.errors.length > 0) {
    throw new ContractError(
      `${path}: expected valid YAML:`,
      parsed.errors.map((error) => error.message),
    );
  }
  return parsed.toJS() as FamilyDocument;
}

/** Visits every `$ref` string below a node. */
function visitRefs(node: unknown, visit: (holder: { $ref: string }) => void): void {
  if (Array.isArray(node)) {
    for (const item of node) visitRefs(item, visit);
    return;
  }
  if (typeof node !== 'object' || node === null) return;
  if ('$ref' in node && typeof node.$ref === 'string') visit(node as { $ref: string });
  for (const value of Object.values(node)) visitRefs(value, visit);
}

/** Makes every reference local and returns the referenced components with their files. */
function localizeRefs(
  path: string,
  family: FamilyDocument,
): { file: string; section: string; name: string }[] {
  const references: { file: string; section: string; name: string }[] = [];
  visitRefs(family, (holder) => {
    const [file = '', fragment = ''] = holder.$ref.split('#');
    const match = /^\/components\/([A-Za-z]+)\/([A-Za-z0-9._-]+)$/.exec(fragment);
    if (match === null) {
      throw new ContractError(`${path}: expected a reference to a component, got \`${holder.$ref}\``);
    }
    references.push({
      file: file === '' ? path : normalize(join(dirname(path), file)),
      section: match[1] ?? '',
      name: match[2] ?? '',
    });
    holder.$ref = `#${fragment}`;
  });
  return references;
}

/** Returns a family document that contains only the named component of a file outside of the contract. */
function pick(cache: FileCache, root: string, file: string, section: string, name: string): FamilyDocument {
  let source = cache.get(file);
  if (source === undefined) {
    source = readFamily(root, file);
    cache.set(file, source);
  }
  const component = source.components?.[section]?.[name];
  if (component === undefined) throw new ContractError(`${file} has no #/components/${section}/${name}`);
  return { openapi: '3.1.0', components: { [section]: { [name]: structuredClone(component) } } };
}

/** Loads the contract's own families, and the components that they use from other files. */
function loadFamilies(contract: Contract, root: string): { path: string; family: FamilyDocument }[] {
  const own = contract.sources(root).map((path) => ({ path, family: readFamily(root, path) }));
  const ownPaths = new Set(own.map(({ path }) => path));
  const cache: FileCache = new Map();
  const loaded = [...own];
  const added = new Set<string>();
  for (const { path, family } of loaded) {
    for (const { file, section, name } of localizeRefs(path, family)) {
      const key = `${file}#${section}/${name}`;
      if (added.has(key)) continue;
      added.add(key);
      if (!ownPaths.has(file)) {
        loaded.push({ path: file, family: pick(cache, root, file, section, name) });
      } else if (
        own.find((other) => other.path === file)?.family.components?.[section]?.[name] === undefined
      ) {
        throw new ContractError(`${path}: ${file} has no #/components/${section}/${name}`);
      }
    }
  }
  return loaded;
}

/** Returns a function that adds entries to a record and reports a duplicate name with both files. */
function makeMerger(problems: string[]) {
  const origin = new Map<string, string>();
  return <T>(target: Record<string, T>, source: Record<string, T>, section: string, path: string): void => {
    for (const [name, value] of Object.entries(source)) {
      const key = `${section} ${name}`;
      const first = origin.get(key);
      if (first !== undefined) problems.push(`${key} is declared in ${first} and in ${path}`);
      origin.set(key, path);
      target[name] = value;
    }
  };
}

function sorted<T>(record: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
}

function requireUniqueOperationIds(document: Pick<Document, 'paths' | 'webhooks'>): string[] {
  const seen = new Map<string, string>();
  return operationObjects(document).flatMap(({ operation, pointer }) => {
    const id = operation.operationId;
    if (id === undefined) return [];
    const first = seen.get(id);
    seen.set(id, pointer);
    return first === undefined ? [] : [`operationId ${id} is declared at ${first} and at ${pointer}`];
  });
}

/** Returns the tags in the order of first use, with their descriptions. */
function collectTags(families: FamilyDocument[], document: Pick<Document, 'paths' | 'webhooks'>): Tag[] {
  const described = new Map<string, Tag>();
  for (const family of families) {
    for (const tag of [...(family.tags ?? []), ...(family['x-tag'] === undefined ? [] : [family['x-tag']])]) {
      described.set(tag.name, tag);
    }
  }
  const used = new Set(operationObjects(document).flatMap(({ operation }) => operation.tags ?? []));
  return [...used].map((name) => described.get(name) ?? { name });
}

/**
 * Merges the family documents of a contract into one self-contained OpenAPI 3.1 document with local references.
 *
 * @throws ContractError for invalid YAML, unresolved references and duplicate names.
 */
export function bundle(contract: Contract, root: string): Bundle {
  const problems: string[] = [];
  const merge = makeMerger(problems);
  const paths: Record<string, PathItem> = {};
  const webhooks: Record<string, PathItem> = {};
  const components: Components = {};
  const catalogue: Record<string, CatalogueEntry> = {};
  const brandedProperties: string[] = [];
  const links: Links = {};
  const families = loadFamilies(contract, root);
  for (const { path, family } of families) {
    merge(paths, family.paths ?? {}, 'path', path);
    merge(webhooks, family.webhooks ?? {}, 'webhook', path);
    merge(catalogue, family['x-error-catalogue'] ?? {}, 'error code', path);
    merge(links, family['x-links'] ?? {}, 'links of', path);
    brandedProperties.push(...(family['x-branded-properties'] ?? []));
    for (const [section, entries] of Object.entries(family.components ?? {})) {
      components[section] ??= {};
      merge(components[section], entries ?? {}, section, path);
    }
  }
  problems.push(...requireUniqueOperationIds({ paths, webhooks }));
  if (problems.length > 0) throw new ContractError('expected unique names:', problems);

  for (const section of Object.keys(components)) components[section] = sorted(components[section] ?? {});
  const document: Document = {
    openapi: '3.1.0',
    info: contract.info,
    servers: contract.servers,
    security: families.find(({ family }) => family.security)?.family.security ?? contract.security,
    tags: collectTags(
      families.map(({ family }) => family),
      { paths, webhooks },
    ),
    paths,
    ...(Object.keys(webhooks).length === 0 ? {} : { webhooks: sorted(webhooks) }),
    components: { ...components, schemas: components.schemas ?? {} },
  };
  return { document, catalogue, brandedProperties: [...new Set(brandedProperties)].sort(), links };
}
