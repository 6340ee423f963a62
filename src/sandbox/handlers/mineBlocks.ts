import type { Handler } from '../control-plane.ts';
import { requireSimulated } from '../require-simulated.ts';

export const run: Handler<'mineBlocks'> = async ({ body }, { chains, runDueJobs }) => {
  const caip2 = body.chain === undefined ? undefined : requireSimulated(chains, body.chain);
  const heights = await chains.mine(caip2, body.count ?? 1);
  await runDueJobs();
  return { data: [...heights].map(([name, height]) => ({ caip2: name, block_number: Number(height) })) };
};
