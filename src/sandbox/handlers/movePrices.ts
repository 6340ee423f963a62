import { invalidField } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';

export const run: Handler<'movePrices'> = async ({ body }, { prices, runDueJobs }) => {
  const changes = new Map(Object.entries(body.prices));
  for (const [asset, price] of changes) {
    if (!/^[a-z0-9.]{1,32}$/.test(asset)) {
      throw invalidField('/prices', `expected the names of assets, got \`${asset}\``);
    }
    if (price !== null && /^[0.]+$/.test(price)) {
      throw invalidField(`/prices/${asset}`, `expected a price above 0, got \`${price}\``);
    }
  }
  await prices.move(changes);
  await runDueJobs();
  return { prices: Object.fromEntries(await prices.all()) };
};
