import { invalidField } from '../../errors.ts';
import { bringDueTimesTo } from '../bring-due-times.ts';
import { clockView, LAST_MS } from '../clock-view.ts';
import type { Handler } from '../control-plane.ts';
import { passTimeTo } from '../pass-time.ts';

export const run: Handler<'setClock'> = async ({ body }, context) => {
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
  await runDueJobs();
  return clockView(clock);
};
