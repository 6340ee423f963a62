import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { type DeliveryProgress, deliveriesOfEvents } from '../domain/access/webhooks/webhook-deliveries.ts';
import {
  findEvent,
  listEvents,
  newestSequence,
  type RecordedEvent,
  resourceFields,
} from '../domain/base/events/events.ts';
import { ApiError, invalidField, invalidQuery } from '../errors.ts';
import type { ControlContext, ControlInput } from './control-plane.ts';
import type { SandboxEvent, SandboxEventDelivery, SandboxEvents } from './generated/schemas.ts';
import { type References, readReferences } from './names.ts';

/** Thrown when a path is malformed or does not exist in the payload. */
export class InvalidPathError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InvalidPathError';
  }
}

/** Member names and list indexes that lead into a JSON value. */
type PayloadPath = readonly string[];

/** The maximum depth of a path, far more than any payload of the API has. */
const MAX_DEPTH = 32;

/**
 * Parses a path: names that are joined by dots (`steps.0.status`), or a JSON pointer (RFC 6901, `/steps/0/status`)
 * for names that contain a dot.
 *
 * @throws InvalidPathError
 */
export function parsePath(text: string): PayloadPath {
  const isPointer = text.startsWith('/');
  const names = isPointer ? text.slice(1).split('/').map(unescapeName) : text.split('.');
  if (names.length > MAX_DEPTH) {
    throw new InvalidPathError(`expected a path of at most ${MAX_DEPTH} names, got ${names.length}`);
  }
  if (!isPointer && names.includes('')) throw new InvalidPathError('expected a path without empty names');
  return names;
}

/** Returns the value at `path`, or undefined if there is none. */
export function valueAt(value: unknown, path: PayloadPath): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  // `length` is the only own property of an array that is not an element. This comparison is faster than
  // `Object.keys`.
  const isMember = typeof value === 'object' && value !== null && Object.hasOwn(value, name);
  if (!isMember || (Array.isArray(value) && name === 'length')) return undefined;
  return valueAt((value as Record<string, unknown>)[name], rest);
}

/**
 * Returns a copy of `value` with `inner` at `path`. Creates what is missing along the path: a list if the next name is
 * `0`, and an object for any other name. A list may grow by one element.
 *
 * @throws InvalidPathError if the path leads through a scalar or past the end of a list.
 */
export function withValueAt(value: unknown, path: PayloadPath, inner: unknown): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return inner;
  if (Array.isArray(value)) {
    const index = /^(0|[1-9]\d{0,8})$/.test(name) ? Number(name) : Number.NaN;
    if (!(index <= value.length)) {
      throw new InvalidPathError(`expected a list index of at most ${value.length}, got \`${name}\``);
    }
    return value.toSpliced(index, 1, withValueAt(value[index], rest, inner));
  }
  if (value === undefined || value === null) {
    const first = withValueAt(undefined, rest, inner);
    return name === '0' ? [first] : { [name]: first };
  }
  if (typeof value !== 'object')
    throw new InvalidPathError(`expected an object or list that contains \`${name}\`, got a plain value`);
  const own = Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
  return { ...value, [name]: withValueAt(own, rest, inner) };
}

type Condition = (payload: unknown) => boolean;

/**
 * Parses `path=value`. The condition is satisfied if the value at the path equals `value`, either as a string or as
 * JSON.
 *
 * @throws InvalidPathError
 */
export function parseCondition(text: string): Condition {
  const mark = text.indexOf('=');
  if (mark < 1) throw new InvalidPathError('expected `path=value`');
  const path = parsePath(text.slice(0, mark));
  const wanted = text.slice(mark + 1);
  const parsed = readJson(wanted);
  return (payload) => {
    const found = valueAt(payload, path);
    return found === wanted || (found !== undefined && isDeepStrictEqual(found, parsed));
  };
}

/**
 * Parses command-line text into the value that replaces `current`: a string if `current` is one, else JSON if the
 * text is valid JSON, else a string.
 */
export function readText(text: string, current: unknown): unknown {
  if (typeof current === 'string') return text;
  const parsed = readJson(text);
  return parsed === undefined ? text : parsed;
}

/** Parses JSON. Returns undefined if the text is not JSON. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// Replaces `~1` before `~0`, as RFC 6901 §4 requires, so that `~01` becomes `~1`.
function unescapeName(name: string): string {
  return name.replaceAll('~1', '/').replaceAll('~0', '~');
}

type Query = ControlInput<'listEvents'>['query'];

/** A position in the event log: the log's id, and the sequence number of the event before the position. */
interface Position {
  readonly log: string;
  readonly sequence: number;
}

interface EventFilter {
  readonly types: readonly string[] | undefined;
  readonly appId: string | undefined;
  readonly conditions: readonly Condition[];
  readonly limit: number;
}

const DEFAULT_LIMIT = 100;

/** The number of events that are read per query in search of matches. */
const BATCH = 500;
const POLL_INTERVAL_MS = 50;

/**
 * Returns events after a position in the log. If there are none, waits up to `wait_ms` for the next events.
 *
 * NOTE: this polls with two short reads each time. So it keeps no transaction open while it waits, and sees events as
 * soon as they are committed, whichever process has recorded them.
 */
export async function followEvents(query: Query, context: ControlContext): Promise<SandboxEvents> {
  const filter: EventFilter = {
    types: await typesOf(query.type, context),
    appId: query.app_id,
    conditions: conditionsOf(query.where),
    limit: query.limit ?? DEFAULT_LIMIT,
  };
  const untilMs = performance.now() + (query.wait_ms ?? 0);
  let position = await positionOf(query.after ?? 'start', context);
  let wasReset = false;
  for (;;) {
    const log = context.eventLog();
    if (position.log !== log) {
      position = { log, sequence: context.eventLogBeginsAfter() };
      wasReset = true;
    }
    const found = await scan(position, filter, context);
    // If a reset happened between the two reads, the events may belong to either log.
    if (context.eventLog() !== log) continue;
    position = { log, sequence: found.sequence };
    const isOver = performance.now() >= untilMs || context.signal.aborted;
    if (found.data.length > 0 || (found.isAtEnd && (wasReset || isOver))) {
      const data = await eventViews(found.data, context);
      return { data, cursor: `${position.log}.${position.sequence}`, began_anew: wasReset };
    }
    if (found.isAtEnd) await sleep(Math.min(POLL_INTERVAL_MS, untilMs - performance.now()), context.signal);
    else await nextTurn();
  }
}

/** Reads one batch. Returns the matching events and the position after the batch. */
async function scan(position: Position, filter: EventFilter, context: ControlContext) {
  const { types, appId, conditions, limit } = filter;
  const { rows, newest } = await context.read(async (em) => {
    const untilSequence = await newestSequence(em);
    const range = { afterSequence: position.sequence, untilSequence, limit: BATCH, types, appId };
    return { rows: await listEvents(em, range), newest: untilSequence };
  });
  const data: RecordedEvent[] = [];
  for (const row of rows) {
    const isWanted = conditions.length === 0 || holdAll(conditions, context.events.write(row.payload));
    if (isWanted) data.push(row);
    if (data.length === limit) return { data, sequence: row.sequence, isAtEnd: false };
  }
  const isAtEnd = rows.length < BATCH;
  const sequence = isAtEnd ? Math.max(newest, position.sequence) : rows.at(-1)!.sequence;
  return { data, sequence, isAtEnd };
}

function holdAll(conditions: readonly Condition[], payload: unknown): boolean {
  return conditions.every((holds) => holds(payload));
}

async function positionOf(after: string, context: ControlContext): Promise<Position> {
  const log = context.eventLog();
  if (after === 'start') return { log, sequence: 0 };
  if (after === 'now') return { log, sequence: await context.read(newestSequence) };
  if (after.startsWith('msg_')) {
    return { log, sequence: (await context.read((em) => findEvent(em, after))).sequence };
  }
  const [name = '', sequence] = after.split('.');
  return { log: name, sequence: Number(sequence) };
}

/** Expands type names and patterns to event types. Returns undefined for all types. */
async function typesOf(
  patterns: readonly string[] | undefined,
  { events }: ControlContext,
): Promise<readonly string[] | undefined> {
  if (patterns === undefined || patterns.includes('*')) return undefined;
  const known = await events.types();
  const lists = patterns.map(async (text) => {
    const pattern = events.readType(text);
    const matches = (type: string): boolean =>
      pattern.endsWith('.*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern;
    const types = known.filter(matches);
    if (types.length === 0) throw invalidQuery('type', await events.unknownType(text));
    return types;
  });
  return (await Promise.all(lists)).flat();
}

function conditionsOf(texts: readonly string[] = []): Condition[] {
  return texts.map((text) => {
    try {
      return parseCondition(text);
    } catch (error) {
      if (error instanceof InvalidPathError) throw invalidQuery('where', `\`${text}\`: ${error.message}`);
      throw error;
    }
  });
}

async function sleep(durationMs: number, signal: AbortSignal): Promise<void> {
  try {
    await pause(Math.max(durationMs, 0), undefined, { signal });
  } catch (error) {
    // If the signal was aborted, the caller of `sleep` handles it.
    if (!signal.aborted) throw error;
  }
}

/**
 * Builds the payload of a triggered event: the API document's example with the given branded values.
 *
 * @returns the payload with the API document's names.
 * @throws ApiError invalid_data with a JSON pointer.
 */
export async function payloadOf(
  { type: named, set = {}, set_text: texts = {} }: ControlInput<'triggerEvent'>['body'],
  { events }: Pick<ControlContext, 'events'>,
): Promise<Record<string, unknown>> {
  const type = events.readType(named);
  if (!(await events.types()).includes(type)) throw invalidField('/type', await events.unknownType(named));
  let payload: unknown = await events.example(type);
  for (const [text, value] of Object.entries(set)) {
    payload = put(payload, text, { member: 'set', value: () => value });
  }
  for (const [text, value] of Object.entries(texts)) {
    payload = put(payload, text, { member: 'set_text', value: (current) => readText(value, current) });
  }
  const read = events.read(payload);
  const fault = await events.fault(type, read);
  if (fault === undefined) return read as Record<string, unknown>;
  const { pointer, message } = fault;
  throw new ApiError('invalid_data', `event \`${named}\` ${pointer}: ${message}`, {
    data: { issues: [{ in: 'event', pointer, message }] },
  });
}

function put(
  payload: unknown,
  text: string,
  { member, value }: { member: string; value: (current: unknown) => unknown },
): unknown {
  try {
    const path = parsePath(text);
    return withValueAt(payload, path, value(valueAt(payload, path)));
  } catch (error) {
    if (!(error instanceof InvalidPathError)) throw error;
    throw invalidField(`/${member}/${text.replaceAll('~', '~0').replaceAll('/', '~1')}`, error.message);
  }
}

/** Returns events in the form of the control plane, with the payload that endpoints receive. */
export async function eventViews(
  rows: readonly RecordedEvent[],
  { events, requests, read }: Pick<ControlContext, 'events' | 'requests' | 'read'>,
): Promise<SandboxEvent[]> {
  if (rows.length === 0) return [];
  const references = rows.map(referencesOf);
  const { named, deliveries } = await read(async (em) => ({
    named: await readReferences(em, references),
    deliveries: await deliveriesOfEvents(
      em,
      rows.map(({ sequence }) => sequence),
    ),
  }));
  return rows.map((event, index) => {
    const payload = events.write(event.payload) as SandboxEvent['payload'];
    return {
      id: event.id,
      app_id: event.appId,
      type: payload.type,
      created_at_ms: event.createdAtMs,
      ...named(references[index]!),
      request_id: requests?.causeOf(event.id) ?? null,
      deliveries:
        event.fannedOutAtMs === null ? null : (deliveries.get(event.sequence) ?? []).map(deliveryView),
      payload,
    };
  });
}

function deliveryView(row: DeliveryProgress): SandboxEventDelivery {
  const { id, endpointId, status, attemptCount } = row;
  return {
    id,
    endpoint_id: endpointId,
    status: status as SandboxEventDelivery['status'],
    attempt_count: attemptCount,
  };
}

/** Returns the resources that an event is about. */
function referencesOf({ appId, payload }: RecordedEvent): References {
  const body = JSON.parse(payload) as Readonly<Record<string, unknown>>;
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
  const userId = text(body.user_id) ?? text((body.user as { id?: unknown } | undefined)?.id);
  const member = resourceFields.find((name) => text(body[name]) !== undefined);
  const subject =
    member === undefined
      ? userId === undefined
        ? undefined
        : { type: 'user', id: userId }
      : { type: member.slice(0, -'_id'.length), id: String(body[member]) };
  return { appId, subject, walletId: text(body.wallet_id), userId };
}
