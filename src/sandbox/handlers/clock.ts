import { invalidField } from '../../errors.ts';
import { bringDueTimesTo, LAST_MS, passTimeTo } from '../clock.ts';
import type { ControllableClock, Handler } from '../control-plane.ts';
import { findUpcoming } from '../find-upcoming.ts';
import type { SandboxClock } from '../generated/schemas.ts';

const DEFAULT_LIMIT = 50;

export const listUpcoming: Handler<'listUpcoming'> = async ({ query }, { clock, read }) => {
  const nowMs = clock.now();
  const found = await read((em) => findUpcoming({ em, nowMs, limit: query.limit ?? DEFAULT_LIMIT }));
  return {
    now_ms: nowMs,
    data: found
      // The clock cannot be set to times after `LAST_MS`.
      .filter(({ atMs }) => atMs <= LAST_MS)
      .map(({ atMs, kind, resourceId }) => ({
        at_ms: atMs,
        at: new Date(atMs).toISOString(),
        kind,
        resource_id: resourceId,
      })),
  };
};

export const getClock: Handler<'getClock'> = async (_input, { clock }) => clockView(clock);

export const setClock: Handler<'setClock'> = async ({ body }, context) => {
  const { clock, change, runDueJobs } = context;
  const beforeMs = clock.now();
  const { now_ms: nowMs = beforeMs, advance_ms: advanceMs = 0, frozen } = body;
  const targetMs = nowMs + advanceMs;
  if (targetMs < 0 || targetMs > LAST_MS) {
    const pointer = body.advance_ms === undefined ? '/now_ms' : '/advance_ms';
    throw invalidField(pointer, `expected a time from 1970 to 9899, got \`${targetMs}\` ms`);
  }
  if (targetMs > beforeMs) {
    await passTimeTo(targetMs, context);
  } else if (targetMs < beforeMs) {
    clock.set(targetMs);
    await change((em) => bringDueTimesTo(em, targetMs));
  }
  if (frozen === true) clock.freeze();
  if (frozen === false) clock.resume();
  if (targetMs <= beforeMs) await runDueJobs();
  return clockView(clock);
};

/** Returns the clock in the form of the control plane. */
function clockView(clock: ControllableClock): SandboxClock {
  const nowMs = clock.now();
  return { now_ms: nowMs, now: new Date(nowMs).toISOString(), frozen: clock.isFrozen };
}
