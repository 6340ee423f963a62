import type { Handler } from '../control-plane.ts';

export const resetSandbox: Handler<'resetSandbox'> = async (_input, context) => {
  await context.reset();
  return { reset: true, now_ms: context.clock.now() };
};
