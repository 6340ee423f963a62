import type { Handler } from '../control-plane.ts';

export const run: Handler<'setProviderState'> = async ({ body: { state } }, { fiat, runDueJobs }) => {
  fiat.setUp(state === 'up');
  await runDueJobs();
  return { state };
};
