import type { Handler } from '../control-plane.ts';

export const run: Handler<'setProviderState'> = async ({ path, body: { state } }, context) => {
  const provider = path.provider === 'cards' ? context.cards : context.fiat;
  provider.setUp(state === 'up');
  await context.runDueJobs();
  return { state };
};
