import { isDeepStrictEqual } from 'node:util';
import { ApiError } from '../errors.ts';

/** The preferences in a `Prefer` header (RFC 7240). */
interface Preference {
  /** The status of the response, as text. */
  readonly code?: string;
  readonly example?: string;
}

/**
 * Parses `code` and `example` from the header, and ignores other preferences (RFC 7240 §2).
 *
 * NOTE: it also accepts `;` between preferences, because clients of other mock servers send `code=404; example=name`.
 */
function parsePrefer(header: string | undefined): Preference {
  const preference: { code?: string; example?: string } = {};
  for (const item of (header ?? '').split(/[,;]/)) {
    const equals = item.indexOf('=');
    const key = item.slice(0, Math.max(0, equals)).trim().toLowerCase();
    if (key !== 'code' && key !== 'example') continue;
    const [, quoted, plain] = /^(?:"([^"]*)"|([^\s"]*))$/.exec(item.slice(equals + 1).trim()) ?? [];
    const chosen = quoted ?? plain;
    // RFC 7240 §2: of several preferences with one name, only the first counts.
    if (chosen !== undefined) preference[key] ??= chosen;
  }
  return preference;
}

/** The examples of one response, by name. Empty if the response has no body. */
type Examples = ReadonlyMap<string, unknown>;

export interface OperationExamples {
  readonly requests: Examples;
  /** The examples of each response, by its status. */
  readonly responses: ReadonlyMap<string, Examples>;
}

type ExampleBook = ReadonlyMap<string, OperationExamples>;

interface ExampleAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly headers: Record<string, string>;
}

interface MediaTypes {
  content?: Record<string, { examples?: Record<string, { value?: unknown }> }>;
}

interface DocumentOperation {
  operationId: string;
  requestBody?: MediaTypes;
  responses: Record<string, MediaTypes>;
}

/** Collects the examples in an OpenAPI document. */
export function readExamples(document: { paths: Record<string, Record<string, unknown>> }): ExampleBook {
  const operations = Object.values(document.paths).flatMap(
    (item) => Object.values(item) as DocumentOperation[],
  );
  return new Map(
    operations.map(({ operationId, requestBody, responses }) => [
      operationId,
      {
        requests: examplesOf(requestBody ?? {}),
        responses: new Map(
          Object.entries(responses).map(([status, response]) => [status, examplesOf(response)]),
        ),
      },
    ]),
  );
}

function examplesOf({ content }: MediaTypes): Examples {
  // JSON, or the only media type of a file.
  const [first] = Object.values(content ?? {});
  const examples = (content?.['application/json'] ?? first)?.examples ?? {};
  return new Map(Object.entries(examples).map(([name, { value }]) => [name, value]));
}

/**
 * Chooses the documented response to a request: the response that the `Prefer` header selects, else the success
 * example that matches the body, else the first success example.
 *
 * @throws ApiError invalid_data for an undocumented status or example. The message lists the documented ones.
 */
export function answerFromExamples(
  { requests, responses }: OperationExamples,
  { prefer, body, successStatus }: { prefer: string | undefined; body: unknown; successStatus: number },
): ExampleAnswer {
  const preference = parsePrefer(prefer);
  const status = preference.code ?? statusWith(responses, preference.example, String(successStatus));
  const examples = responses.get(status);
  if (examples === undefined) throw notDocumented('code', status, responses.keys());
  const name = preference.example ?? nameFor(examples, requests, body);
  if (name !== undefined && !examples.has(name)) {
    const choices = preference.code === undefined ? allNames(responses) : examples.keys();
    throw notDocumented('example', name, choices);
  }
  const value = name === undefined ? undefined : examples.get(name);
  return { status: Number(status), body: value, headers: appliedHeader(preference) };
}

/** Returns the status whose examples include this name. A success status takes precedence. */
function statusWith(
  responses: OperationExamples['responses'],
  example: string | undefined,
  successStatus: string,
): string {
  if (example === undefined || responses.get(successStatus)?.has(example)) return successStatus;
  const found = [...responses].find(([, examples]) => examples.has(example));
  return found?.[0] ?? successStatus;
}

/**
 * Chooses the example for a request: it has the name of the request example that equals the body, or a name that
 * equals a string in the body, such as its `method` or `chain_type`. If there is none, it is the first example.
 */
function nameFor(examples: Examples, requests: Examples, body: unknown): string | undefined {
  const [first] = examples.keys();
  if (examples.size < 2 || typeof body !== 'object' || body === null) return first;
  const same = [...requests].find(([name, value]) => examples.has(name) && isDeepStrictEqual(value, body));
  const word = Object.values(body).find((value) => typeof value === 'string' && examples.has(value));
  return same?.[0] ?? word ?? first;
}

function allNames(responses: OperationExamples['responses']): string[] {
  return [...new Set([...responses.values()].flatMap((examples) => [...examples.keys()]))];
}

function notDocumented(kind: 'code' | 'example', wanted: string, known: Iterable<string>): ApiError {
  const choices = [...known];
  const listed = choices.length === 0 ? 'none' : choices.join(', ');
  return new ApiError(
    'invalid_data',
    `Prefer: expected a documented ${kind} (${listed}), got \`${wanted}\``,
    {
      data: { [`${kind}s`]: choices },
    },
  );
}

/** Returns the header that confirms the preference (RFC 7240 §3). */
function appliedHeader({ code, example }: Preference): Record<string, string> {
  const applied = [
    ...(code === undefined ? [] : [`code=${code}`]),
    ...(example === undefined ? [] : [`example=${example}`]),
  ];
  return applied.length === 0 ? {} : { 'preference-applied': applied.join(', ') };
}
