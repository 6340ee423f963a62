import { isDeepStrictEqual } from 'node:util';
import { type ContractDocument, resolveReference } from '../contract-document.ts';
import { type Change, collectChanges, shown } from './change.ts';
import { type Direction, diffSchemas, type SchemaComparison } from './diff-schemas.ts';

type Node = Readonly<Record<string, unknown>>;

/** An operation of either document, or a webhook event. */
interface Operation {
  /** `createWallet`, otherwise `POST /v1/wallets`; the type of an event. */
  readonly name: string;
  readonly node: Node;
}

const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];
const textMembers = ['summary', 'description', 'tags', 'externalDocs', 'x-codeSamples'];
const comparedMembers = new Set([
  ...textMembers,
  ...['operationId', 'parameters', 'requestBody', 'responses', 'security'],
]);

/** What changed from one OpenAPI 3.1 document to another, breaking changes first. */
export function diffContracts(before: ContractDocument, after: ContractDocument): Change[] {
  const changes = collectChanges();
  const comparison = { before, after, changes, compared: new Set<string>(), numbers: new Map() };
  const [old, fresh] = [operationsOf(before), operationsOf(after)];
  for (const [key, operation] of old) {
    const same = fresh.get(key);
    if (same === undefined) {
      changes.add('breaking', 'operation-removed', operation.name, `${key} was removed`);
    } else diffOperation(comparison, [operation, same]);
  }
  for (const [key, { name }] of fresh) {
    if (!old.has(key)) changes.add('compatible', 'operation-added', name, `${key} was added`);
  }
  diffEvents(comparison);
  if (!isDeepStrictEqual(textsOf(before), textsOf(after))) {
    changes.add('text', 'text-changed', 'document', 'title, version, description, servers or tags changed');
  }
  const order = ['breaking', 'compatible', 'text'];
  return changes.list().toSorted((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
}

function textsOf(document: ContractDocument): unknown {
  const { info, servers, tags } = document as unknown as Node;
  return { info, servers, tags };
}

/** By method and path; a path parameter may have another name. */
function operationsOf({ paths = {} }: ContractDocument): ReadonlyMap<string, Operation> {
  return new Map(
    Object.entries(paths).flatMap(([path, item]) =>
      Object.entries(item)
        .filter(([method]) => methods.includes(method))
        .map(([method, node]): [string, Operation] => {
          const key = `${method.toUpperCase()} ${path.replaceAll(/\{[^{}]*\}/g, '{}')}`;
          const parameters = [
            ...listOf((item as unknown as Node).parameters),
            ...listOf((node as unknown as Node).parameters),
          ];
          const name = node.operationId ?? `${method.toUpperCase()} ${path}`;
          return [key, { name, node: { ...node, parameters } }];
        }),
    ),
  );
}

function diffOperation(comparison: SchemaComparison, [before, after]: [Operation, Operation]): void {
  const { changes } = comparison;
  const { name } = after;
  if (before.node.operationId !== after.node.operationId) {
    const message = `was ${shown(before.node.operationId)}, is ${shown(after.node.operationId)}`;
    changes.add('breaking', 'operation-renamed', name, message);
  }
  const securityOf = (document: ContractDocument, { node }: Operation): unknown =>
    node.security ?? (document as unknown as Node).security;
  const [old, fresh] = [securityOf(comparison.before, before), securityOf(comparison.after, after)];
  if (!isDeepStrictEqual(old, fresh)) {
    changes.add('breaking', 'security-changed', name, `was ${shown(old)}, is ${shown(fresh)}`);
  }
  diffParameters(comparison, [before, after]);
  const bodies = [before.node.requestBody, after.node.requestBody] as const;
  diffMessage(comparison, bodies, { name, place: `${name} request`, direction: 'request' });
  diffResponses(comparison, [before, after]);
  diffMembers(comparison, [before.node, after.node], name);
}

/** Members without a comparison of their own, so that no difference is left out. */
function diffMembers({ changes }: SchemaComparison, [before, after]: [Node, Node], name: string): void {
  for (const member of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (isDeepStrictEqual(before[member], after[member])) continue;
    if (textMembers.includes(member)) changes.add('text', 'text-changed', name, `${member} changed`);
    else if (!comparedMembers.has(member)) {
      const message = `${member} was ${shown(before[member])}, is ${shown(after[member])}`;
      changes.add('compatible', 'operation-changed', name, message);
    }
  }
}

function diffParameters(comparison: SchemaComparison, [before, after]: [Operation, Operation]): void {
  const { changes } = comparison;
  const [old, fresh] = [parametersOf(comparison.before, before), parametersOf(comparison.after, after)];
  for (const [key, parameter] of old) {
    const same = fresh.get(key);
    const place = `${after.name} ${key}`;
    if (same === undefined) {
      changes.add('breaking', 'parameter-removed', place, 'was removed');
      continue;
    }
    const [was = false, is = false] = [parameter.required, same.required];
    if (was !== is) {
      const message = is ? 'is required now' : 'is not required any more';
      changes.add(is ? 'breaking' : 'compatible', 'required-changed', place, message);
    }
    diffSchemas(comparison, [parameter.schema, same.schema], { name: place, direction: 'request' });
    diffRest(comparison, [parameter, same], place, ['required', 'schema', 'name', 'in']);
  }
  for (const [key, { required }] of fresh) {
    if (old.has(key)) continue;
    const message = required === true ? 'was added and is required' : 'was added';
    changes.add(
      required === true ? 'breaking' : 'compatible',
      'parameter-added',
      `${after.name} ${key}`,
      message,
    );
  }
}

/** By place and name; those in the path by their position. */
function parametersOf(document: ContractDocument, { node }: Operation): ReadonlyMap<string, Node> {
  let position = 0;
  return new Map(
    listOf(node.parameters).map((reference) => {
      const parameter = resolveReference(document, reference) as Node;
      if (parameter.in === 'path') position += 1;
      return [parameter.in === 'path' ? `path ${position}` : `${parameter.in} ${parameter.name}`, parameter];
    }),
  );
}

function listOf(list: unknown): unknown[] {
  return Array.isArray(list) ? list : [];
}

interface MessagePlace {
  readonly name: string;
  readonly place: string;
  readonly direction: Direction;
}

/** Compares two request bodies, responses or payloads of events. */
function diffMessage(
  comparison: SchemaComparison,
  [before, after]: readonly [unknown, unknown],
  { name, place, direction }: MessagePlace,
): void {
  const { changes } = comparison;
  const old = resolveReference(comparison.before, before) as Node | undefined;
  const fresh = resolveReference(comparison.after, after) as Node | undefined;
  if (old === undefined || fresh === undefined) {
    if (old !== undefined) changes.add('breaking', 'body-removed', place, 'was removed');
    const isRequired = direction === 'request' && fresh?.required === true;
    if (fresh !== undefined) {
      changes.add(isRequired ? 'breaking' : 'compatible', 'body-added', place, 'was added');
    }
    return;
  }
  if (direction === 'request' && (old.required === true) !== (fresh.required === true)) {
    const isNow = fresh.required === true;
    const message = isNow ? 'is required now' : 'is not required any more';
    changes.add(isNow ? 'breaking' : 'compatible', 'required-changed', place, message);
  }
  const [types, typesNow] = [mediaOf(old), mediaOf(fresh)];
  for (const [type, media] of Object.entries(types)) {
    const same = typesNow[type];
    if (same === undefined) {
      changes.add('breaking', 'media-type-removed', place, `${shown(type)} was removed`);
      continue;
    }
    diffSchemas(comparison, [media.schema ?? {}, same.schema ?? {}], { name: place, direction });
    if (!isDeepStrictEqual(examplesOf(media), examplesOf(same))) {
      changes.add('text', 'text-changed', place, 'examples changed');
    }
  }
  for (const type of Object.keys(typesNow)) {
    if (!(type in types)) changes.add('compatible', 'media-type-added', place, `${shown(type)} was added`);
  }
  diffRest(comparison, [old, fresh], name === place ? name : place, ['required', 'content']);
}

function mediaOf({ content }: Node): Readonly<Record<string, Node>> {
  return (content ?? {}) as Readonly<Record<string, Node>>;
}

function examplesOf({ example, examples }: Node): unknown {
  return { example, examples };
}

/** Other members of a parameter, body or response: texts, and settings such as `style`. */
function diffRest(
  { changes }: SchemaComparison,
  [before, after]: readonly [Node, Node],
  place: string,
  known: readonly string[],
): void {
  for (const member of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (known.includes(member) || isDeepStrictEqual(before[member], after[member])) continue;
    const isText = ['description', 'summary', 'example', 'examples'].includes(member);
    changes.add(
      isText ? 'text' : 'compatible',
      isText ? 'text-changed' : 'operation-changed',
      place,
      `${member} changed`,
    );
  }
}

function diffResponses(comparison: SchemaComparison, [before, after]: [Operation, Operation]): void {
  const { changes } = comparison;
  const [old, fresh] = [before.node.responses ?? {}, after.node.responses ?? {}] as [Node, Node];
  for (const [status, response] of Object.entries(old)) {
    const place = `${after.name} ${status}`;
    if (!(status in fresh)) {
      changes.add('breaking', 'status-removed', place, 'was removed');
      continue;
    }
    diffMessage(comparison, [response, fresh[status]], { name: after.name, place, direction: 'response' });
    if (!isSuccess(status)) diffCodes(comparison, [response, fresh[status]], place);
  }
  for (const status of Object.keys(fresh)) {
    // A client knows what to do with the successes of the old document only.
    const severity = isSuccess(status) ? 'breaking' : 'compatible';
    if (!(status in old)) changes.add(severity, 'status-added', `${after.name} ${status}`, 'was added');
  }
}

function isSuccess(status: string): boolean {
  return /^[23]/.test(status);
}

/** An error response has one example for each code, under the code's name. */
function diffCodes(
  { before, after, changes }: SchemaComparison,
  [old, fresh]: readonly [unknown, unknown],
  place: string,
): void {
  const [codes, codesNow] = [codesOf(before, old), codesOf(after, fresh)];
  for (const code of codes) {
    if (!codesNow.includes(code)) {
      changes.add('breaking', 'error-code-removed', place, `${shown(code)} was removed`);
    }
  }
  for (const code of codesNow) {
    if (!codes.includes(code))
      changes.add('compatible', 'error-code-added', place, `${shown(code)} was added`);
  }
}

function codesOf(document: ContractDocument, response: unknown): string[] {
  const [media] = Object.values(mediaOf((resolveReference(document, response) ?? {}) as Node));
  return Object.keys((media?.examples ?? {}) as object);
}

function diffEvents(comparison: SchemaComparison): void {
  const { before, after, changes } = comparison;
  const [old, fresh] = [before.webhooks ?? {}, after.webhooks ?? {}] as [Node, Node];
  for (const [type, item] of Object.entries(old)) {
    if (!(type in fresh)) {
      changes.add('breaking', 'event-removed', `event ${type}`, 'was removed');
      continue;
    }
    const [post, postNow] = [item, fresh[type]].map((one) => ((one as Node).post ?? {}) as Node) as [
      Node,
      Node,
    ];
    const name = `event ${type}`;
    diffMessage(comparison, [post.requestBody, postNow.requestBody], {
      name,
      place: name,
      direction: 'response',
    });
    for (const member of ['operationId', 'parameters', 'responses', 'security']) {
      if (isDeepStrictEqual(post[member], postNow[member])) continue;
      changes.add('compatible', 'operation-changed', name, `${member} changed`);
    }
    diffMembers(comparison, [post, postNow], name);
  }
  for (const type of Object.keys(fresh)) {
    if (!(type in old)) changes.add('compatible', 'event-added', `event ${type}`, 'was added');
  }
}
