import { parsePrefer } from '../mock/prefer.ts';
import { hasCredentials } from './credentials.ts';
import { type Located, locate } from './open-api.ts';
import type { OpenedDocument } from './open-document.ts';
import { type DocumentOperation, isJson, type MediaContent } from './read-operations.ts';
import { sampleOf } from './sample.ts';
import { type RequestMessage, requestFault } from './validate-message.ts';

export interface MockAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/**
 * The response to a request as the document shows it: the status and the example that the `Prefer` header selects,
 * otherwise the first example of the first success. Without an example, one is made from the schema.
 *
 * CHOICE: refusals that a document does not describe are `{error}`; credentials must have the right form, and any are
 * accepted.
 */
export function answerRequest(
  opened: OpenedDocument,
  request: RequestMessage & { readonly method: string },
): MockAnswer {
  const { method, target, headers } = request;
  const [path = '/'] = target.split('?');
  const found = opened.index.find(method, path);
  if (found === undefined) {
    const allowed = opened.index.methodsOf(path);
    return allowed.length === 0
      ? refusal(404, `${path} is no path of the document`)
      : refusal(405, `${path} has the methods ${allowed.join(', ')}`, { allow: allowed.join(', ') });
  }
  const { operation } = found;
  if (!hasCredentials(operation.security, request)) {
    return refusal(401, 'the request has none of the credentials that the document requires');
  }
  const fault = requestFault(opened, found, request);
  if (fault !== undefined) return refusal(fault.status, fault.message);
  const prefer = headers.prefer;
  return answerFrom(opened, operation, typeof prefer === 'object' ? prefer.join(', ') : prefer);
}

function answerFrom(
  opened: OpenedDocument,
  operation: DocumentOperation,
  prefer: string | undefined,
): MockAnswer {
  const { code, example } = parsePrefer(prefer);
  const keys = [...operation.responses.keys()];
  const withExample =
    example === undefined
      ? undefined
      : keys.find((key) => operation.responses.get(key)!.some((media) => media.node.examples?.[example]));
  const key = code === undefined ? (withExample ?? successOf(keys)) : keyFor(keys, code);
  if (key === undefined) {
    return refusal(400, `Prefer: expected a status of ${keys.join(', ')}, got \`${code ?? 'none'}\``);
  }
  const content = operation.responses.get(key)!;
  const media = content.find(({ node }) => isJson(node.type)) ?? content[0];
  const names = [...content].flatMap(({ node }) => Object.keys(node.examples ?? {}));
  if (example !== undefined && !names.includes(example)) {
    const known = names.length === 0 ? 'none' : names.join(', ');
    return refusal(400, `Prefer: expected an example of ${known}, got \`${example}\``);
  }
  const status =
    code !== undefined ? Number(code) : key === 'default' ? 200 : Number(key.replaceAll('X', '0'));
  const applied = [code && `code=${code}`, example && `example=${example}`].filter(Boolean).join(', ');
  const headers = applied === '' ? {} : { 'preference-applied': applied };
  if (media === undefined) return { status, headers, text: '' };
  const value = exampleOf(opened, media, example);
  const type = media.node.type.includes('*') ? 'application/json' : media.node.type;
  const text = isJson(type) || typeof value !== 'string' ? JSON.stringify(value) : value;
  return { status, headers: { ...headers, 'content-type': type }, text };
}

/** The first success, or the default. */
function successOf(keys: readonly string[]): string | undefined {
  return keys.find((key) => key.startsWith('2')) ?? keys.find((key) => key === 'default') ?? keys[0];
}

function keyFor(keys: readonly string[], code: string): string | undefined {
  if (!/^[1-5]\d\d$/.test(code)) return undefined;
  return [code, `${code[0]}XX`, 'default'].find((key) => keys.includes(key));
}

/** The example of a name, the first one, or a sample of the schema. */
export function exampleOf(
  { document }: Pick<OpenedDocument, 'document'>,
  { node, pointer }: Located<MediaContent>,
  name: string | undefined,
): unknown {
  const first = name ?? Object.keys(node.examples ?? {})[0];
  if (first !== undefined) {
    const step = first.replaceAll('~', '~0').replaceAll('/', '~1');
    return locate<{ value?: unknown }>(document, `${pointer}/examples/${step}`)?.node.value ?? null;
  }
  return node.example !== undefined ? node.example : sampleOf(document, `${pointer}/schema`);
}

function refusal(status: number, error: string, headers: Readonly<Record<string, string>> = {}): MockAnswer {
  return {
    status,
    headers: { ...headers, 'content-type': 'application/json' },
    text: JSON.stringify({ error }),
  };
}
