import { invalidField } from '../../errors.ts';
import { clockView } from '../clock-view.ts';
import type { Handler } from '../control-plane.ts';

// 9999-12-31T23:59:59.999Z, the last instant that the contract's formats can write.
const lastMs = 253_402_300_799_999;

export const run: Handler<'setClock'> = async ({ body }, { clock, settle }) => {
  const { now_ms: nowMs = clock.now(), advance_ms: advanceMs = 0, frozen } = body;
  const wantedMs = nowMs + advanceMs;
  if (wantedMs < 0 || wantedMs > lastMs) {
    throw invalidField('/advance_ms', 'the clock must stay between the years 1970 and 9999');
  }
  if (body.now_ms !== undefined) clock.set(nowMs);
  if (advanceMs !== 0) clock.advance(advanceMs);
  if (frozen === true) clock.freeze();
  if (frozen === false) clock.resume();
  await settle();
  return clockView(clock);
};
