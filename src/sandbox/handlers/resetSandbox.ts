import type { Handler } from '../control-plane.ts';

export const run: Handler<'resetSandbox'> = async (_input, context) => {
  await context.reset();
  return { reset: true, now_ms: context.clock.now() };
};
