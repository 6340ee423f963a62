import { notFound } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';

export const run: Handler<'listDivergences'> = async ({ query: { operation } }) => {
  // Loaded when it is asked for: it is as long as the texts of all decisions.
  const { divergences, sharedDecisions, simulatedParts } = await import('../generated/divergences.ts');
  const found = divergences.filter((each) => operation === undefined || each.operation === operation);
  if (found.length === 0) throw notFound('operation');
  return {
    data: found.map(({ operation, simulated, decisions }) => ({
      operation,
      simulated: simulatedParts.filter(({ name }) => simulated.includes(name)),
      decisions: [...decisions],
    })),
    shared: [...sharedDecisions],
  };
};
