import { ApiError, shorten } from '../errors.ts';
import type {
  BodyShape,
  BodyShapes,
  ValidateFunction,
  ValidationError,
} from '../generated/validate-function.ts';
import type { Log } from '../ports/runtime.ts';
import { operationOf, type RequestState } from './request-state.ts';
import type { RequestValidators } from './route-index.ts';

type RequestPart = 'path' | 'query' | 'headers' | 'body';

/** One violation in a request. */
interface Issue {
  readonly in: RequestPart;
  /** A JSON pointer within that part. */
  readonly pointer: string;
  readonly message: string;
}

const MAX_ISSUES = 20;
const MAX_LISTED_VALUES = 40;

/** The keywords of unions. Their errors follow the errors of their branches and are less specific. */
const unions = new Set(['anyOf', 'oneOf']);

/**
 * Returns 400 `invalid_data` for invalid parameters. The errors' pointers begin with `/path`, `/query` or `/headers`.
 */
export function parametersFault(errors: readonly ValidationError[]): ApiError {
  return fault(
    toIssues(errors, (pointer) => {
      const [, part = 'query', ...rest] = pointer.split('/');
      return { in: part as RequestPart, pointer: rest.map((name) => `/${name}`).join('') };
    }),
    errors.some(({ keyword }) => unions.has(keyword)),
  );
}

/**
 * Returns 400 `invalid_data` for an invalid body.
 *
 * @param body if given, the error names all missing properties of an object, not only the first.
 * @param others finds the faults that the validator did not reach, because it stops at the first one.
 */
export function bodyFault(
  errors: readonly ValidationError[],
  body?: unknown,
  others: (body: unknown) => readonly ValidationError[] = () => [],
): ApiError {
  const all = body === undefined ? errors : errors.flatMap((error) => withAllMissing(error, body));
  const areAlternatives = errors.some(({ keyword }) => unions.has(keyword));
  const known = new Set(all.map(pointerOf));
  const further =
    body === undefined || areAlternatives ? [] : others(body).filter((error) => !known.has(pointerOf(error)));
  return fault(
    toIssues([...all, ...further], (pointer) => ({ in: 'body', pointer })),
    areAlternatives,
  );
}

/** Returns the missing properties and the values of a wrong type in a body, outside of unions. Stops at 20. */
export function shapeErrors(body: unknown, operationId: string, shapes: BodyShapes): ValidationError[] {
  const found: ValidationError[] = [];
  visit(body, shapes.operations[operationId] ?? {}, '');
  return found;

  function visit(value: unknown, shape: BodyShape, instancePath: string): void {
    if (found.length >= MAX_ISSUES) return;
    if (shape.ref !== undefined) {
      visit(value, shapes.named[shape.ref] ?? {}, instancePath);
      return;
    }
    const { types, required = [], properties = {}, items } = shape;
    if (types !== undefined && !types.some((type) => hasType(value, type))) {
      const type = types.length === 1 ? types[0]! : types;
      found.push({ keyword: 'type', instancePath, schemaPath: '', params: { type } });
      return;
    }
    if (Array.isArray(value)) {
      if (items === undefined) return;
      for (const [index, item] of value.entries()) {
        if (found.length >= MAX_ISSUES) return;
        visit(item, items, `${instancePath}/${index}`);
      }
      return;
    }
    if (typeof value !== 'object' || value === null) return;
    const object = value as Readonly<Record<string, unknown>>;
    for (const missingProperty of required) {
      if (Object.hasOwn(object, missingProperty)) continue;
      found.push({ keyword: 'required', instancePath, schemaPath: '', params: { missingProperty } });
    }
    for (const [name, inner] of Object.entries(properties)) {
      if (Object.hasOwn(object, name)) visit(object[name], inner, `${instancePath}/${escapePointer(name)}`);
    }
  }
}

function hasType(value: unknown, type: string): boolean {
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value);
  if (type === 'integer') return Number.isInteger(value);
  return typeof value === type;
}

/** Returns one error for each missing property of the object, in the order of the schema. */
function withAllMissing(error: ValidationError, body: unknown): readonly ValidationError[] {
  const { required, missingProperty } = error.params;
  if (error.keyword !== 'required' || !Array.isArray(required)) return [error];
  let at: unknown = body;
  for (const name of error.instancePath.split('/').slice(1)) {
    at = (at as Record<string, unknown> | undefined)?.[name.replaceAll('~1', '/').replaceAll('~0', '~')];
  }
  if (typeof at !== 'object' || at === null) return [error];
  const object = at as Record<string, unknown>;
  const missing = (required as string[]).filter(
    (name) => name === missingProperty || object[name] === undefined,
  );
  return missing.map((name) => ({ ...error, params: { ...error.params, missingProperty: name } }));
}

/** Returns the pointer and message of the first violation, for a log. */
export function describeFault(errors: readonly ValidationError[]): { pointer: string; message: string } {
  const [issue] = toIssues(errors, (pointer) => ({ in: 'body', pointer }));
  return { pointer: issue?.pointer ?? '', message: issue?.message ?? 'is not valid' };
}

/** The maximum number of violations in the message. `issues` has up to `MAX_ISSUES`. */
const MAX_NAMED = 10;

/**
 * Creates the error for these issues.
 *
 * @param areAlternatives whether correcting one of the issues may be enough. If so, the message names only the first.
 */
function fault(issues: readonly Issue[], areAlternatives = false): ApiError {
  const named = issues.slice(0, areAlternatives ? 1 : MAX_NAMED).map((issue) => {
    const place = issue.in === 'body' ? issue.pointer || 'body' : issue.pointer.slice(1) || issue.in;
    return `${place}: ${issue.message}`;
  });
  return new ApiError('invalid_data', named.join('; '), { data: { issues } });
}

function toIssues(
  errors: readonly ValidationError[],
  locate: (pointer: string) => Pick<Issue, 'in' | 'pointer'>,
): Issue[] {
  const byPlace = new Map<string, { place: Pick<Issue, 'in' | 'pointer'>; messages: Set<string> }>();
  for (const error of deepest(errors)) {
    const place = locate(pointerOf(error));
    const key = `${place.in} ${place.pointer}`;
    const known = byPlace.get(key) ?? { place, messages: new Set<string>() };
    known.messages.add(describe(error, place));
    byPlace.set(key, known);
  }
  return [...byPlace.values()].slice(0, MAX_ISSUES).map(({ place, messages }) => ({
    in: place.in,
    pointer: shorten(place.pointer),
    message: shorten([...messages].join(', or ')),
  }));
}

/** Returns the deepest errors of a union's branches, because their branch is closest to what the caller meant. */
function deepest(errors: readonly ValidationError[]): readonly ValidationError[] {
  const specific = errors.filter((error) => !unions.has(error.keyword));
  if (specific.length === errors.length || specific.length === 0) return errors;
  const depth = (error: ValidationError): number => error.instancePath.split('/').length;
  const most = Math.max(...specific.map(depth));
  return specific.filter((error) => depth(error) === most);
}

/** Returns the pointer of the missing or unknown property itself, not of the object that contains it. */
function pointerOf({ keyword, instancePath, params }: ValidationError): string {
  if (keyword === 'required') return `${instancePath}/${escapePointer(String(params.missingProperty))}`;
  if (keyword === 'additionalProperties') {
    return `${instancePath}/${escapePointer(String(params.additionalProperty))}`;
  }
  if (keyword === 'discriminator') return `${instancePath}/${escapePointer(String(params.tag))}`;
  return instancePath;
}

// RFC 6901 §3: `~` is written `~0`, `/` is written `~1`.
function escapePointer(name: string): string {
  return shorten(name).replaceAll('~', '~0').replaceAll('/', '~1');
}

function describe(error: ValidationError, place: Pick<Issue, 'in' | 'pointer'>): string {
  if (place.in === 'query' && place.pointer === '/limit' && error.keyword === 'maximum') {
    // The exact text that published clients expect.
    return `Query limit can be at maximum ${error.params.limit} records.`;
  }
  const words = wordings[error.keyword];
  return words === undefined ? (error.message ?? 'is not valid') : words(error.params);
}

type Params = ValidationError['params'];

const wordings: Readonly<Record<string, (params: Params) => string>> = {
  required: () => 'is required',
  additionalProperties: () => 'unknown property',
  type: ({ type }) => `must be ${[type].flat().map(withArticle).join(' or ')}`,
  enum: ({ allowedValues }) => `must be one of ${listValues(allowedValues as unknown[])}`,
  const: ({ allowedValue }) => `must be ${showValue(allowedValue)}`,
  discriminator: ({ error, tagValue }) =>
    error === 'tag' ? 'must be a string' : `unknown value ${showValue(tagValue)}`,
  minLength: ({ limit }) => `must have at least ${count(limit, 'character')}`,
  maxLength: ({ limit }) => `must have at most ${count(limit, 'character')}`,
  minItems: ({ limit }) => `must have at least ${count(limit, 'item')}`,
  maxItems: ({ limit }) => `must have at most ${count(limit, 'item')}`,
  minProperties: ({ limit }) => `must have at least ${count(limit, 'property', 'properties')}`,
  maxProperties: ({ limit }) => `must have at most ${count(limit, 'property', 'properties')}`,
  uniqueItems: ({ i, j }) => `items ${j} and ${i} must not be the same`,
  minimum: ({ limit }) => `must be at least ${limit}`,
  maximum: ({ limit }) => `must be at most ${limit}`,
  exclusiveMinimum: ({ limit }) => `must be more than ${limit}`,
  exclusiveMaximum: ({ limit }) => `must be less than ${limit}`,
  multipleOf: ({ multipleOf }) => `must be a multiple of ${multipleOf}`,
  pattern: ({ pattern }) => `must match the pattern ${pattern}`,
  format: ({ format }) =>
    format === 'integer-text' ? 'must be an integer' : `must have the format ${format}`,
  anyOf: () => 'matches none of the allowed shapes',
  oneOf: () => 'must match exactly one of the allowed shapes',
  'false schema': () => 'is not allowed',
};

function withArticle(type: unknown): string {
  if (type === 'null') return 'null';
  return /^[aeio]/.test(String(type)) ? `an ${type}` : `a ${type}`;
}

function listValues(values: readonly unknown[]): string {
  const shown = values.slice(0, MAX_LISTED_VALUES).map(showValue).join(', ');
  return values.length > MAX_LISTED_VALUES ? `${shown}, …` : shown;
}

function showValue(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

function count(limit: unknown, one: string, many = `${one}s`): string {
  return `${limit} ${limit === 1 ? one : many}`;
}

/** Validates the body of an operation that is embedded in another request, for example in a proposed intent. */
type CheckBody = (operationId: string, body: unknown, at: string) => void;

/** Creates a check that throws `invalid_data` with JSON pointers below `at`. */
export function createBodyCheck(validators: Readonly<Record<string, RequestValidators>>): CheckBody {
  return (operationId, body, at) => {
    const validate = validators[operationId]?.body;
    if (validate === undefined || validate(body)) return;
    const errors = validate.errors ?? [];
    const all = errors.flatMap((error) => withAllMissing(error, body));
    throw bodyFault(all.map((error) => ({ ...error, instancePath: at + error.instancePath })));
  };
}

/**
 * `always` turns a violation into an error for the caller; `sampled` checks one response in a hundred and only logs.
 */
export type ResponseCheckMode = 'always' | 'sampled' | 'off';

interface ResponseCheckOptions {
  readonly mode: ResponseCheckMode;
  /** By operation and status. */
  readonly validators: Readonly<Record<string, Readonly<Record<string, ValidateFunction>>>>;
  readonly log: Log;
}

/** Validates a response against the API document. Throws `internal_error`. */
export type CheckResponse = (state: RequestState, status: number, body: unknown) => void;

const SAMPLE_EVERY = 100;

export function createResponseCheck({ mode, validators, log }: ResponseCheckOptions): CheckResponse {
  if (mode === 'off') return () => undefined;
  let seen = 0;
  return (state, status, body) => {
    seen += 1;
    if (mode === 'sampled' && seen % SAMPLE_EVERY !== 1) return;
    const { id } = operationOf(state);
    const validate = validators[id]?.[status];
    if (validate?.(body) === true) return;
    const fault =
      validate === undefined
        ? { pointer: '', message: `the status ${status} is not in the contract` }
        : describeFault(validate.errors ?? []);
    log.error({ request_id: state.id, operation: id, status, ...fault }, 'the response breaks the contract');
    const details = mode === 'always' ? { operation: id, status, ...fault } : {};
    throw new ApiError('internal_error', undefined, { data: { request_id: state.id, ...details } });
  };
}

const NUL = '\0';
const MESSAGE = 'must not contain U+0000';

// Members that are only signed. They are neither looked up nor stored in a column of their own. Where a body is stored,
// it is JSON, which escapes the character.
const signedTexts: Readonly<Record<string, readonly string[]>> = {
  walletRpc: ['/params/message', '/params/typed_data'],
  createWalletRpcIntent: ['/params/message', '/params/typed_data'],
  rawSignWallet: ['/params/bytes'],
};

/**
 * Refuses the character U+0000 in every string of a request, because PostgreSQL cannot store it. Throws `invalid_data`
 * with the JSON pointers.
 *
 * CHOICE: texts that are only signed may contain it, because their signatures cover every character. Property names may
 * contain it too, because they are stored as JSON.
 */
export function refuseNulCharacters(state: RequestState): void {
  const found: Issue[] = [];
  // Headers and JSON cannot contain the raw character, so two searches suffice for almost every request.
  if (state.target.includes('%00')) {
    findNul(state.route?.params, { part: 'path' }, '', found);
    findNul(state.query, { part: 'query' }, '', found);
  }
  if (state.rawBody.length > 0 && state.rawBody.includes('\\u0000')) {
    const signed = signedTexts[state.route?.operation.id ?? ''];
    findNul(state.body, { part: 'body', signed }, '', found);
  }
  const [first] = found;
  if (first === undefined) return;
  const place = first.in === 'body' ? first.pointer || 'body' : first.pointer.slice(1);
  throw new ApiError('invalid_data', `${place}: ${MESSAGE}`, { data: { issues: found } });
}

interface Search {
  readonly part: RequestPart;
  /** The pointers of values that may contain the character. */
  readonly signed?: readonly string[] | undefined;
}

function findNul(value: unknown, search: Search, pointer: string, found: Issue[]): void {
  if (found.length === MAX_ISSUES) return;
  if (typeof value === 'string') {
    if (value.includes(NUL)) found.push({ in: search.part, pointer, message: MESSAGE });
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    // RFC 6901 §3
    const at = `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    if (search.signed?.includes(at) !== true) findNul(member, search, at, found);
  }
}
