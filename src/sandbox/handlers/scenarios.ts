import { ApiError } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';
import { openStage, scenarios } from '../scenarios.ts';

export const listScenarios: Handler<'listScenarios'> = async () => ({
  data: scenarios.map(({ name, summary }) => ({ name, summary })),
});

export const runScenario: Handler<'runScenario'> = async ({ path }, context) => {
  const scenario = scenarios.find(({ name }) => name === path.name);
  if (scenario === undefined) {
    const names = scenarios.map(({ name }) => `\`${name}\``).join(', ');
    throw new ApiError('not_found', `Scenario not found: expected one of ${names}`);
  }
  const stage = openStage(context);
  const commands = await scenario.play(stage);
  const { name, summary } = scenario;
  return { name, summary, resources: [...stage.resources], steps: [...stage.steps], try_next: [...commands] };
};
