import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { findEvent, listEvents, newestSequence } from '../domain/base/events/events.ts';
import { invalidQuery } from '../errors.ts';
import type { ControlContext, ControlInput } from './control-plane.ts';
import { eventView } from './event-view.ts';
import type { SandboxEvent, SandboxEvents } from './generated/schemas.ts';
import { type Condition, InvalidPathError, parseCondition } from './payload-path.ts';

type Query = ControlInput<'listEvents'>['query'];

/** A position in the event log: the log's id and the sequence of the last event before the position. */
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
/** Events read per query while searching for matches. */
const BATCH = 500;
const POLL_INTERVAL_MS = 50;

/**
 * Returns events after a position in the log. When there are none, waits up to `wait_ms` for the next ones.
 *
 * NOTE: waiting polls with two short reads each time, so it holds no transaction and sees events once they are
 * committed, regardless of which process recorded them.
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
    // After a reset in between, the events may come from either log.
    if (context.eventLog() !== log) continue;
    position = { log, sequence: found.sequence };
    const isOver = performance.now() >= untilMs || context.signal.aborted;
    if (found.data.length > 0 || (found.isAtEnd && (wasReset || isOver))) {
      return { data: found.data, cursor: `${position.log}.${position.sequence}`, began_anew: wasReset };
    }
    if (found.isAtEnd) await sleep(Math.min(POLL_INTERVAL_MS, untilMs - performance.now()), context.signal);
    else await nextTurn();
  }
}

/** Reads one batch; returns the matching events and the position after it. */
async function scan(position: Position, filter: EventFilter, context: ControlContext) {
  const { types, appId, conditions, limit } = filter;
  const { rows, newest } = await context.read(async (em) => {
    const untilSequence = await newestSequence(em);
    const range = { afterSequence: position.sequence, untilSequence, limit: BATCH, types, appId };
    return { rows: await listEvents(em, range), newest: untilSequence };
  });
  const data: SandboxEvent[] = [];
  for (const row of rows) {
    const event = eventView(row, context);
    if (conditions.every((holds) => holds(event.payload))) data.push(event);
    if (data.length === limit) return { data, sequence: row.sequence, isAtEnd: false };
  }
  const isAtEnd = rows.length < BATCH;
  const sequence = isAtEnd ? Math.max(newest, position.sequence) : rows.at(-1)!.sequence;
  return { data, sequence, isAtEnd };
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

/** Expands type names and patterns to event types; undefined for all types. */
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
    // Aborted: the caller of `sleep` checks the signal.
    if (!signal.aborted) throw error;
  }
}
