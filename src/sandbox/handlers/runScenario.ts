import { notFound } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';
import { scenarios } from '../scenarios/scenarios.ts';
import { openStage } from '../scenarios/stage.ts';

export const run: Handler<'runScenario'> = async ({ path }, context) => {
  const scenario = scenarios.find(({ name }) => name === path.name);
  if (scenario === undefined) throw notFound('Scenario');
  const stage = openStage(context);
  const commands = await scenario.play(stage);
  const { name, summary } = scenario;
  return { name, summary, resources: [...stage.resources], steps: [...stage.steps], try_next: [...commands] };
};
