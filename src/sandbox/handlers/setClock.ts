import { invalidField } from '../../errors.ts';
import { clockView } from '../clock-view.ts';
import type { Handler } from '../control-plane.ts';

// 9999-12-31T23:59:59.999Z, the last instant that the contract's date formats can represent.
const lastMs = 253_402_300_799_999;

export const run: Handler<'setClock'> = async ({ body }, { clock, runDueJobs }) => {
  const { now_ms: nowMs = clock.now(), advance_ms: advanceMs = 0, frozen } = body;
  const targetMs = nowMs + advanceMs;
  if (targetMs < 0 || targetMs > lastMs) {
    throw invalidField('/advance_ms', `expected a time from 1970 to 9999, got \`${targetMs}\` ms`);
  }
  if (body.now_ms !== undefined) clock.set(nowMs);
  if (advanceMs !== 0) clock.advance(advanceMs);
  if (frozen === true) clock.freeze();
  if (frozen === false) clock.resume();
  await runDueJobs();
  return clockView(clock);
};
