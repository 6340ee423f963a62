import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { findEvent, listEvents, newestSequence } from '../domain/base/events/list-events.ts';
import { invalidQuery } from '../errors.ts';
import type { ControlContext, ControlInput } from './control-plane.ts';
import { eventView } from './event-view.ts';
import type { SandboxEvent, SandboxEvents } from './generated/schemas.ts';
import { type Condition, InvalidPathError, parseCondition } from './payload-path.ts';

type Query = ControlInput<'listEvents'>['query'];

/** A place in the log: the name of the log and the sequence of the last event before the place. */
interface Place {
  readonly log: string;
  readonly sequence: number;
}

interface Wanted {
  readonly types: readonly string[] | undefined;
  readonly appId: string | undefined;
  readonly conditions: readonly Condition[];
  readonly limit: number;
}

const DEFAULT_LIMIT = 100;
/** Events read at once while looking for those that hold the conditions. */
const BATCH = 500;
/** How often the log is read anew while nothing has come, ms. */
const LOOK_EVERY_MS = 50;

/**
 * Events after a place of the log; when there are none, the first that come within `wait_ms`.
 *
 * NOTE: waiting is looking again and again, each time with two short reads of their own: no transaction is held, and
 * an event counts from its commit, whichever way it was recorded.
 */
export async function followEvents(query: Query, context: ControlContext): Promise<SandboxEvents> {
  const wanted: Wanted = {
    types: await typesOf(query.type, context),
    appId: query.app_id,
    conditions: conditionsOf(query.where),
    limit: query.limit ?? DEFAULT_LIMIT,
  };
  const untilMs = performance.now() + (query.wait_ms ?? 0);
  let place = await placeOf(query.after ?? 'start', context);
  let beganAnew = false;
  for (;;) {
    const log = context.eventLog();
    if (place.log !== log) {
      place = { log, sequence: 0 };
      beganAnew = true;
    }
    const found = await scan(place, wanted, context);
    // A reset in between: what was read may be of either log.
    if (context.eventLog() !== log) continue;
    place = { log, sequence: found.sequence };
    const isOver = performance.now() >= untilMs || context.signal.aborted;
    if (found.data.length > 0 || (found.isAtEnd && (beganAnew || isOver))) {
      return { data: found.data, cursor: `${place.log}.${place.sequence}`, began_anew: beganAnew };
    }
    if (found.isAtEnd) await rest(Math.min(LOOK_EVERY_MS, untilMs - performance.now()), context.signal);
    else await nextTurn();
  }
}

/** One batch: what of it is wanted, and where it ends. */
async function scan(place: Place, wanted: Wanted, context: ControlContext) {
  const { types, appId, conditions, limit } = wanted;
  const { rows, newest } = await context.read(async (em) => {
    const untilSequence = await newestSequence(em);
    const range = { afterSequence: place.sequence, untilSequence, limit: BATCH, types, appId };
    return { rows: await listEvents(em, range), newest: untilSequence };
  });
  const data: SandboxEvent[] = [];
  for (const row of rows) {
    const event = eventView(row, context);
    if (conditions.every((holds) => holds(event.payload))) data.push(event);
    if (data.length === limit) return { data, sequence: row.sequence, isAtEnd: false };
  }
  const isAtEnd = rows.length < BATCH;
  const sequence = isAtEnd ? Math.max(newest, place.sequence) : rows.at(-1)!.sequence;
  return { data, sequence, isAtEnd };
}

async function placeOf(after: string, context: ControlContext): Promise<Place> {
  const log = context.eventLog();
  if (after === 'start') return { log, sequence: 0 };
  if (after === 'now') return { log, sequence: await context.read(newestSequence) };
  if (after.startsWith('msg_')) {
    return { log, sequence: (await context.read((em) => findEvent(em, after))).sequence };
  }
  const [name = '', sequence] = after.split('.');
  return { log: name, sequence: Number(sequence) };
}

/** The types that the names and patterns stand for; undefined for all. */
async function typesOf(
  patterns: readonly string[] | undefined,
  { events }: ControlContext,
): Promise<readonly string[] | undefined> {
  if (patterns === undefined || patterns.includes('*')) return undefined;
  const known = await events.types();
  const lists = patterns.map(async (text) => {
    const pattern = events.readType(text);
    const isMeant = (type: string): boolean =>
      pattern.endsWith('.*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern;
    const meant = known.filter(isMeant);
    if (meant.length === 0) throw invalidQuery('type', await events.unknownType(text));
    return meant;
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

async function rest(durationMs: number, signal: AbortSignal): Promise<void> {
  try {
    await pause(Math.max(durationMs, 0), undefined, { signal });
  } catch (error) {
    // The server stops, or the caller has gone: what follows ends.
    if (!signal.aborted) throw error;
  }
}
